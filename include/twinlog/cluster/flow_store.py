"""A flow's record on the target cluster: read it, and change it so that of two who try at once only one succeeds.

A change opens the state's transactional id, which fences every change still under way, *then* reads, decides and
writes. One that was fenced, or that a broker's restart rolled back, begins again by reading, so a decision must come to
the same when it is taken twice. A change returns once the new record is visible, so whoever fences the lanes next finds
writers that will see it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from twinlog.cluster.committed_records import read_committed_records
from twinlog.cluster.log_offsets import OffsetAt, list_offsets
from twinlog.cluster.raw import RawClient
from twinlog.cluster.transaction import TransactionalWriter
from twinlog.errors import ClusterError, ClusterUnreachableError, FencedError
from twinlog.model.flow_state import FlowRecord, from_records, to_records
from twinlog.model.lanes import state_transactional_id
from twinlog.model.offsets import TopicPartition
from twinlog.wire.own_records import build_batches
from twinlog.wire.restamp import restamp
from twinlog.wire.source import SourcePartition

TRANSACTION_TIMEOUT_MS = 30_000
RETRIES = 40
MAX_BATCH_BYTES = 512 * 1024
VISIBLE_WITHIN_S = 30.0
PAUSE_S = 0.02
ATTEMPTS = 10
MOST_PAUSE_S = 2.0


class FlowStore:
    """The record of one flow, in its state topic."""

    def __init__(self, client: RawClient, flow: str, topic: str) -> None:
        self._client = client
        self._flow = flow
        self._partition = TopicPartition(topic, 0)

    async def read(self) -> FlowRecord:
        """The record as it is committed now."""
        values: dict[str, bytes] = {}
        for record in await read_committed_records(self._client, self._partition):
            if record.key is not None and record.value is not None:
                values[record.key.decode()] = record.value
        return from_records(values, f"cluster {self._client.alias}, topic {self._partition.topic}")

    async def change(self, decide: Callable[[FlowRecord], FlowRecord | None]) -> FlowRecord | None:
        """Write what `decide` makes of the record, or nothing where it answers None; the answer is handed back."""
        attempt = 1
        while True:
            try:
                return await self._change(decide)
            except (FencedError, ClusterError) as failure:
                hopeless = not failure.retriable and not isinstance(failure, FencedError)
                if hopeless or attempt == ATTEMPTS:
                    raise
            # At random, or two who fence each other would go on doing so in step.
            await self._client.pause(random.uniform(0.01, min(0.05 * 2**attempt, MOST_PAUSE_S)))  # noqa: S311 - no secret
            attempt += 1

    async def _change(self, decide: Callable[[FlowRecord], FlowRecord | None]) -> FlowRecord | None:
        writer = TransactionalWriter(
            self._client, state_transactional_id(self._flow), timeout_ms=TRANSACTION_TIMEOUT_MS, retries=RETRIES
        )
        await writer.open()
        before = await self.read()
        after = decide(before)
        if after is None or after == before:
            return after
        old, new = to_records(before), to_records(after)
        changed = [(key.encode(), value) for key, value in new.items() if old[key] != value]
        await self._write(writer, changed)
        return after

    async def _write(self, writer: TransactionalWriter, pairs: list[tuple[bytes, bytes]]) -> None:
        target = SourcePartition(self._client.alias, self._partition.topic, 0)
        (batch,) = build_batches(pairs, int(time.time() * 1000), max_batch_bytes=MAX_BATCH_BYTES, target=target)
        metadata = await self._client.metadata([self._partition.topic])
        leader = metadata.leader(self._partition)
        await writer.add_partitions([self._partition])
        stamped = restamp(
            batch,
            producer_id=writer.producer_id,
            producer_epoch=writer.producer_epoch,
            base_sequence=writer.take_sequence(self._partition, batch.record_count),
        )
        base_offset = (await writer.produce(leader, {self._partition: stamped}))[self._partition]
        await writer.commit()
        await self._await_visible(base_offset + batch.record_count)

    async def _await_visible(self, end: int) -> None:
        deadline = time.monotonic() + VISIBLE_WITHIN_S
        while time.monotonic() < deadline:
            metadata = await self._client.metadata([self._partition.topic])
            stable = await list_offsets(self._client, metadata, [self._partition], OffsetAt.LAST_STABLE)
            if stable.offsets.get(self._partition, -1) >= end:
                return
            await self._client.pause(PAUSE_S)
        raise ClusterUnreachableError(
            f"cluster {self._client.alias}: the change of {self._flow}'s state was committed but did not become "
            f"visible within {VISIBLE_WITHIN_S:.0f} s; check the cluster's transaction coordinators"
        )
