"""The checkpoints topic on the target, in MirrorMaker 2's format: what was written, and what is written next.

Writing is done under a transactional id that is opened before anything is read, so of two passes at once the earlier
is told that it was overtaken instead of writing what is older. A topic that MirrorMaker 2 left is gone on with. The
last record of a group and partition says all that is needed, so nothing depends on what compaction has left before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from twinlog.cluster.committed_records import read_committed_records
from twinlog.cluster.kept_values import RETRIES, TRANSACTION_TIMEOUT_MS, append_records
from twinlog.cluster.raw import RawClient
from twinlog.cluster.transaction import TransactionalWriter
from twinlog.errors import MirrorMakerFormatError
from twinlog.model.checkpoints import Checkpoint, Written
from twinlog.model.offsets import TopicPartition
from twinlog.wire import mirror_maker

RECORDS_A_TRANSACTION = 50_000
"""A million took longer on a busy machine than a transaction may, and then no pass ever came to its end."""


class GroupPartition(NamedTuple):
    """A group and a partition of the target. A tuple, since there may be 50,000."""

    group: str
    partition: TopicPartition


class CheckpointNote(NamedTuple):
    """A checkpoint, and which offsets of its group on the target are ours."""

    checkpoint: Checkpoint
    ours: frozenset[int]


@dataclass(frozen=True, slots=True)
class CheckpointStore:
    """The checkpoints of one flow."""

    client: RawClient
    topic: str
    transactional_id: str

    async def open(self) -> TransactionalWriter:
        """Become the one who writes; whoever was is fenced."""
        writer = TransactionalWriter(
            self.client, self.transactional_id, timeout_ms=TRANSACTION_TIMEOUT_MS, retries=RETRIES
        )
        await writer.open()
        return writer

    async def read(self, strange: list[str] | None = None) -> dict[GroupPartition, Written]:
        """The last of each group and partition; nothing where there is no topic yet.

        `strange` gets a sentence for each record that is no checkpoint: somebody else's, and in nobody's way.
        """
        known = (await self.client.metadata([self.topic])).topics.get(self.topic)
        if known is None or not known.partitions:
            return {}
        found: dict[GroupPartition, Written] = {}
        for record in await read_committed_records(self.client, TopicPartition(self.topic, 0)):
            if record.key is None or record.value is None:
                continue
            where = f"cluster {self.client.alias}: {self.topic}-0@{record.offset}"
            try:
                one = mirror_maker.Checkpoint.decode(record.key, record.value, where)
            except MirrorMakerFormatError as unreadable:
                if strange is not None:
                    strange.append(f"{unreadable}; it is passed over")
                continue
            checkpoint = Checkpoint(one.upstream_offset, one.downstream_offset, one.metadata)
            ours = frozenset((one.downstream_offset,)) if one.ours is None else one.ours
            found[GroupPartition(one.group, one.target)] = Written(checkpoint, record.timestamp_ms, ours)
        return found

    async def write(self, writer: TransactionalWriter, notes: Mapping[GroupPartition, CheckpointNote]) -> None:
        """Append these, so many in a transaction; returns once they are visible.

        Each says all that is to be said of its group and partition: those that are written stay true where a later
        transaction fails.
        """
        pairs = [(record.key(), record.value()) for record in (_record(place, note) for place, note in notes.items())]
        for start in range(0, len(pairs), RECORDS_A_TRANSACTION):
            await append_records(self.client, writer, self.topic, pairs[start : start + RECORDS_A_TRANSACTION])


def _record(place: GroupPartition, note: CheckpointNote) -> mirror_maker.Checkpoint:
    one = note.checkpoint
    # Without our addition, which is then not needed, the bytes are those that MirrorMaker 2 itself would write.
    ours = None if note.ours == {one.downstream} else note.ours
    return mirror_maker.Checkpoint(place.group, place.partition, one.upstream, one.downstream, one.metadata, ours)
