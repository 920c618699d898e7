"""Values by key in a compacted topic of one partition: read them, and change them so that of two who try at once only
one succeeds.

A change opens a transactional id, which fences every change still under way, *then* reads, decides and writes. One that
was fenced, or that a broker's restart rolled back, begins again by reading, so a decision must come to the same when it
is taken twice. A change returns once it is visible.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from twinlog.cluster.committed_records import read_committed_records
from twinlog.cluster.log_offsets import OffsetAt, list_offsets
from twinlog.cluster.raw import RawClient
from twinlog.cluster.transaction import TransactionalWriter
from twinlog.errors import ClusterError, ClusterUnreachableError, FencedError
from twinlog.model.offsets import TopicPartition
from twinlog.wire.own_records import build_batches
from twinlog.wire.source import SourcePartition

TRANSACTION_TIMEOUT_MS = 30_000
RETRIES = 40
MAX_BATCH_BYTES = 512 * 1024
VISIBLE_WITHIN_S = 30.0
PAUSE_S = 0.02
ATTEMPTS = 10
MOST_PAUSE_S = 2.0

Values = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class KeptValues:
    """The values of one topic."""

    client: RawClient
    topic: str
    transactional_id: str

    async def read(self) -> dict[str, bytes]:
        """Every value as it is committed now."""
        values: dict[str, bytes] = {}
        for record in await read_committed_records(self.client, TopicPartition(self.topic, 0)):
            if record.key is None:
                continue
            if record.value is None:
                values.pop(record.key.decode(), None)
            else:
                values[record.key.decode()] = record.value
        return values

    async def change(self, decide: Callable[[Values], Values | None]) -> None:
        """Make the values what `decide` answers, or leave them where it answers None; only differences are written."""
        attempt = 1
        while True:
            try:
                return await self._change(decide)
            except (FencedError, ClusterError) as failure:
                hopeless = not failure.retriable and not isinstance(failure, FencedError)
                if hopeless or attempt == ATTEMPTS:
                    raise
            # At random, or two who fence each other would go on doing so in step.
            await self.client.pause(random.uniform(0.01, min(0.05 * 2**attempt, MOST_PAUSE_S)))  # noqa: S311 - no secret
            attempt += 1

    async def _change(self, decide: Callable[[Values], Values | None]) -> None:
        writer = TransactionalWriter(
            self.client, self.transactional_id, timeout_ms=TRANSACTION_TIMEOUT_MS, retries=RETRIES
        )
        await writer.open()
        before = await self.read()
        after = decide(before)
        if after is None:
            return
        pairs: list[tuple[bytes, bytes | None]] = [
            (key.encode(), value) for key, value in after.items() if before.get(key) != value
        ]
        pairs += [(key.encode(), None) for key in before if key not in after]
        if pairs:
            await append_records(self.client, writer, self.topic, pairs)


async def append_records(
    client: RawClient, writer: TransactionalWriter, topic: str, pairs: Sequence[tuple[bytes, bytes | None]]
) -> None:
    """Append keys and values to partition 0 in a transaction of the writer; returns once they are visible."""
    partition = TopicPartition(topic, 0)
    metadata = await client.metadata([topic])
    leader = metadata.leader(partition)
    await writer.add_partitions([partition])
    target = SourcePartition(client.alias, topic, 0)
    end = 0
    for batch in build_batches(pairs, int(time.time() * 1000), max_batch_bytes=MAX_BATCH_BYTES, target=target):
        stamped = writer.stamp(partition, batch)
        base_offset = (await writer.produce(leader, {partition: stamped}))[partition]
        end = base_offset + batch.record_count
    await writer.commit()
    await _await_visible(client, partition, end)


async def _await_visible(client: RawClient, partition: TopicPartition, end: int) -> None:
    deadline = time.monotonic() + VISIBLE_WITHIN_S
    while time.monotonic() < deadline:
        metadata = await client.metadata([partition.topic])
        stable = await list_offsets(client, metadata, [partition], OffsetAt.LAST_STABLE)
        if stable.offsets.get(partition, -1) >= end:
            return
        await client.pause(PAUSE_S)
    raise ClusterUnreachableError(
        f"cluster {client.alias}: a change of {partition.topic} was committed but did not become visible within "
        f"{VISIBLE_WITHIN_S:.0f} s; check the cluster's transaction coordinators"
    )
