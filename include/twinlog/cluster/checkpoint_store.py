"""The checkpoints topic on the target, in MirrorMaker 2's format: what was written, and what is written next.

Writing is done under a transactional id that is opened before anything is read, so of two passes at once the earlier
is told that it was overtaken instead of writing what is older. A topic that MirrorMaker 2 left is gone on with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from twinlog.cluster.committed_records import read_committed_records
from twinlog.cluster.kept_values import RETRIES, TRANSACTION_TIMEOUT_MS, append_records
from twinlog.cluster.raw import RawClient
from twinlog.cluster.transaction import TransactionalWriter
from twinlog.model.checkpoints import Checkpoint, Written
from twinlog.model.offsets import TopicPartition
from twinlog.wire import mirror_maker


class GroupPartition(NamedTuple):
    """A group and a partition of the target. A tuple, since there may be 50,000."""

    group: str
    partition: TopicPartition


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

    async def read(self) -> dict[GroupPartition, Written]:
        """All that compaction has left; nothing where there is no topic yet."""
        known = (await self.client.metadata([self.topic])).topics.get(self.topic)
        if known is None or not known.partitions:
            return {}
        found: dict[GroupPartition, Written] = {}
        for record in await read_committed_records(self.client, TopicPartition(self.topic, 0)):
            if record.key is None or record.value is None:
                continue
            where = f"cluster {self.client.alias}: {self.topic}-0@{record.offset}"
            one = mirror_maker.Checkpoint.decode(record.key, record.value, where)
            checkpoint = Checkpoint(one.upstream_offset, one.downstream_offset, one.metadata)
            place = GroupPartition(one.group, one.target)
            before = found.get(place)
            found[place] = (
                Written(checkpoint, record.timestamp_ms, frozenset((checkpoint.downstream,)))
                if before is None
                else before.followed_by(checkpoint, record.timestamp_ms)
            )
        return found

    async def write(self, writer: TransactionalWriter, checkpoints: Mapping[GroupPartition, Checkpoint]) -> None:
        """Append these, all of them or none; returns once they are visible."""
        records = [
            mirror_maker.Checkpoint(place.group, place.partition, one.upstream, one.downstream, one.metadata)
            for place, one in checkpoints.items()
        ]
        await append_records(self.client, writer, self.topic, [(record.key(), record.value()) for record in records])
