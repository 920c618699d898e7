"""One lane: reads its partitions' ranges and writes them to the target in transactions of its own.

    reader ──parcels──> sender ──Produce, at most 5 in flight a partition──> target
                           │ acknowledged: base offset
                           v
                        segments ─┐
                        positions ┴─> journal and group, in the same transaction ──> commit

What always holds:
- a transaction holds a span of each partition, its journal entries and its new position, or nothing;
- a partition's batches are sent, and so acknowledged, in order;
- whatever goes wrong in a transaction, it is rolled back and the lane starts again from the committed positions: there
  is no other way to go on, so there is nothing to repair.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from twinlog.cluster.flow_watch import FlowWatch
from twinlog.cluster.produce_request import Pieces
from twinlog.cluster.raw import RawClient
from twinlog.cluster.signal import Signal
from twinlog.cluster.source_partition import Parcel
from twinlog.cluster.source_reader import SourceReader
from twinlog.cluster.target_partition import TargetPartition, batch_of
from twinlog.cluster.transaction import TransactionalWriter
from twinlog.model.figures import Figures
from twinlog.model.offsets import JournalEntry, TopicPartition
from twinlog.wire import journal
from twinlog.wire.own_records import build_batches
from twinlog.wire.source import SourcePartition

MOST_IN_FLIGHT = 5
"""A broker remembers the last five batches of a producer; more in flight could not be told from doubles."""


@dataclass(frozen=True, slots=True)
class LaneSettings:
    """How a lane writes."""

    flow: str
    run: str
    group: str
    journal: TopicPartition
    journal_leader: int | None
    journal_max_batch_bytes: int
    transaction_bytes: int
    transaction_s: float
    in_flight: int
    max_request_bytes: int
    """Of a Produce; a batch that is larger goes alone."""
    deadline: float
    """On the monotonic clock: the time budget of the run. A transaction that is open then is still committed."""


Sending = dict[TopicPartition, tuple[TargetPartition, Parcel]]
"""What one Produce request carries: a batch a partition."""


class Lane:
    """Copies what its reader brings, transaction by transaction."""

    def __init__(
        self,
        client: RawClient,
        writer: TransactionalWriter,
        reader: SourceReader,
        *,
        arrived: Signal,
        settings: LaneSettings,
        watch: FlowWatch,
        targets: Iterable[TargetPartition],
        figures: Figures,
    ) -> None:
        self._client = client
        self._writer = writer
        self._reader = reader
        self._wake = arrived
        self._settings = settings
        self._watch = watch
        self.targets = {state.pair.source: state for state in targets}
        self._failure: Exception | None = None
        self._sent_bytes = 0
        self._unanswered: Counter[int | None] = Counter()
        self.figures = figures

    async def copy(self) -> None:
        """Transaction after transaction until the ranges are copied, the time is up or the flow is to stop."""
        began = time.monotonic()
        try:
            while await self._transaction():
                pass
        finally:
            # Requests that are still out belong to this attempt; the next one must not meet their answers.
            while self._in_flight():
                await self._wake.wait()
            self.figures.seconds += time.monotonic() - began

    @property
    def finished(self) -> bool:
        """Everything that could be read has been sent."""
        return all(state.exhausted and not state.parcels for state in self._reader.partitions.values())

    async def _transaction(self) -> bool:
        """Send, then commit; whether there may be more to do."""
        started = time.monotonic()
        self._sent_bytes = 0
        while not self._is_full(started) and not self.finished:
            self._raise_failure()
            if not await self._send_what_is_ready():
                await self._wait()
        while self._in_flight():
            self._raise_failure()
            await self._wait()
        self._raise_failure()
        if any(state.touched for state in self.targets.values()):
            await self._commit()
        return not self.finished and not self._must_end()

    def _is_full(self, started: float) -> bool:
        return (
            self._sent_bytes >= self._settings.transaction_bytes
            or time.monotonic() - started >= self._settings.transaction_s
            or self._must_end()
        )

    def _must_end(self) -> bool:
        return self._watch.stop is not None or time.monotonic() >= self._settings.deadline

    def _in_flight(self) -> bool:
        return any(state.in_flight for state in self.targets.values())

    async def _send_what_is_ready(self) -> bool:
        """A batch of every partition that has one, as few requests as they fit in; whether anything went out.

        A broker with as many requests as a partition may have is left alone until it answers one: what has come for
        other partitions by then goes with the next, and partitions that fell out of step are in step again.
        """
        # Nothing is sent while the throttle is owed time, but the transaction's own time runs on and ends it.
        if self._watch.throttle.owed_s(time.monotonic()) > 0:
            return False
        requests: list[tuple[int | None, Sending]] = []
        filling: dict[int | None, int] = {}
        added = []
        for source, state in self.targets.items():
            if self._unanswered[state.leader] >= self._settings.in_flight:
                continue
            parcel = self._next_batch(source, state)
            if parcel is None:
                continue
            size = batch_of(parcel).size_bytes
            room = filling.get(state.leader, 0)
            if room < size:
                requests.append((state.leader, {}))
                room = max(self._settings.max_request_bytes, size)
            filling[state.leader] = room - size
            carried = next(batches for leader, batches in reversed(requests) if leader == state.leader)
            carried[state.pair.target] = (state, parcel)
            added.append(state.pair.target)
        if not requests:
            return False
        # The journal with the first of them: it is written to before the commit, and need not be asked for then.
        await self._writer.add_partitions([*added, self._settings.journal])
        size = sum(self._send(node_id, batches) for node_id, batches in requests)
        self._sent_bytes += size
        self._watch.throttle.take(size, time.monotonic())
        return True

    def _next_batch(self, source: TopicPartition, state: TargetPartition) -> Parcel | None:
        """The next parcel with a batch, if the partition may have one more in flight; passed-over offsets are noted."""
        while state.in_flight < self._settings.in_flight:
            waiting = self._reader.partitions[source].parcels
            if waiting and waiting[0].batch is None and state.in_flight:
                return None
            parcel = self._reader.take(source)
            if parcel is None or parcel.batch is not None:
                return parcel
            state.pass_over(parcel)
        return None

    def _send(self, node_id: int | None, batches: Sending) -> int:
        """Start one Produce; its answer is handled when it comes. Answers how many bytes it carries."""
        stamped: dict[TopicPartition, Pieces] = {}
        size = 0
        for partition, (state, parcel) in batches.items():
            batch = batch_of(parcel)
            size += batch.size_bytes
            stamped[partition] = self._writer.stamp(partition, batch)
            state.sent()
        self._unanswered[node_id] += 1
        self.figures.produces += 1
        self.figures.in_flight_sum += self._unanswered.total()
        self._client.spawn(self._deliver(node_id, stamped, batches))
        return size

    async def _deliver(self, node_id: int | None, stamped: dict[TopicPartition, Pieces], batches: Sending) -> None:
        """Send, wait for the answer and note it; a failure is kept for the lane, which rolls back."""
        try:
            offsets = await self._writer.produce(node_id, stamped)
            for partition, (state, parcel) in batches.items():
                batch = state.acknowledge(parcel, offsets[partition], self._client.alias)
                self.figures.records += batch.record_count
                self.figures.bytes += batch.size_bytes
                self.figures.batches += 1
        except Exception as failure:  # noqa: BLE001 - kept, and raised by the lane itself
            self._failure = self._failure or failure
        finally:
            self._unanswered[node_id] -= 1
            for state, parcel in batches.values():
                state.in_flight -= 1
                self._reader.done_with(state.pair.source, parcel)
            self._wake.notify()

    async def _commit(self) -> None:
        """Journal entries and positions into the transaction, then the commit."""
        touched = [state for state in self.targets.values() if state.touched]
        now_ms = int(time.time() * 1000)
        pairs = [
            journal.encode(
                JournalEntry(self._settings.flow, self._settings.run, now_ms, segment, *state.known_beside(segment))
            )
            for state in touched
            for segment in state.segments()
        ]
        before = time.monotonic()
        positions = {state.pair.target: state.new_position() for state in touched}
        # Neither needs the other, and each takes its time: at once, since nothing is copied meanwhile.
        await self._client.gather(
            (self._write_journal(pairs, now_ms), self._writer.commit_positions(self._settings.group, positions))
        )
        await self._writer.commit()
        self.figures.waited_target_s += time.monotonic() - before
        self.figures.transactions += 1
        for state in touched:
            state.committed()

    async def _write_journal(self, pairs: list[tuple[bytes, bytes]], now_ms: int) -> None:
        if not pairs:
            return
        topic = self._settings.journal
        await self._writer.add_partitions([topic])
        target = SourcePartition(self._client.alias, topic.topic, topic.partition)
        for batch in build_batches(
            pairs, now_ms, max_batch_bytes=self._settings.journal_max_batch_bytes, target=target
        ):
            stamped = self._writer.stamp(topic, batch)
            await self._writer.produce(self._settings.journal_leader, {topic: stamped})

    async def _wait(self) -> None:
        """Until something arrives, is acknowledged, or a tick of the watch lets the time be looked at again."""
        before = time.monotonic()
        await self._wake.wait()
        seconds = time.monotonic() - before
        if self._watch.throttle.owed_s(before) > 0:
            self.figures.throttled_s += seconds
        elif self._in_flight():
            self.figures.waited_target_s += seconds
        else:
            self.figures.waited_source_s += seconds

    def _raise_failure(self) -> None:
        failure = self._failure or self._reader.failure
        if failure is not None:
            raise failure
