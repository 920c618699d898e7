"""Reads ranges of source partitions ahead of the writer, many partitions in one Fetch, within a bound of memory.

What always holds:
- a partition's parcels come in the order of its offsets, and together with their gaps account for every one of them;
- no more than `read_ahead_bytes` are held, from when they are asked for until whoever took them is done with them (one
  answer may exceed it: a batch always comes whole), and one half is fetched while the other is written;
- a partition that can't be read any further, or that nobody has led for too long, is named in `refused`; the others go
  on;
- every Fetch names the leader epoch of the batch before it, so a log that was cut meanwhile is noticed by the broker.

Two coroutines a source broker keep a Fetch each in flight there, for every other partition, so that the broker is busy
while an answer is looked through; a partition whose leader moves changes hands while the others are read on. The broker
answers at once, because a range never reaches beyond what readers of committed records may see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Iterable, Iterator
from typing import Any

from kafka.protocol.consumer import FetchRequest

from twinlog.cluster.fetch_errors import check_fetched, is_passing, reading_refused
from twinlog.cluster.fetch_request import BY_ID_VERSION
from twinlog.cluster.fetched import select_from
from twinlog.cluster.metadata import ClusterMetadata, Partition
from twinlog.cluster.raw import RawClient
from twinlog.cluster.signal import Signal
from twinlog.cluster.source_partition import FetchSettings, Parcel, SourcePartitionState, fetch_from
from twinlog.errors import BatchTooLargeError, ClusterUnreachableError, CorruptBatchError
from twinlog.model.figures import Figures
from twinlog.model.findings import Finding, FindingKind
from twinlog.model.offsets import TopicPartition
from twinlog.model.positions import NO_LEADER_EPOCH
from twinlog.wire.source import SourcePartition

MOST_VERSION = 16

FETCHES_IN_FLIGHT = 2
"""To each broker; a partition is asked for in one of them at a time."""

TIMES_DAMAGED = 3
"""Damage on the way is gone when the bytes are fetched again; after so many times it is in the log itself."""


class SourceReader:
    """Fetches the ranges of one lane."""

    def __init__(
        self,
        client: RawClient,
        partitions: Iterable[SourcePartitionState],
        settings: FetchSettings,
        arrived: Signal,
        figures: Figures,
    ) -> None:
        self._client = client
        self._settings = settings
        self._arrived = arrived
        self._figures = figures
        self._room = Signal()
        self._moved = Signal()
        self._serving: dict[tuple[int, int], Awaitable[None]] = {}
        self._asked_bytes: Counter[int] = Counter()
        self._closed = False
        self._version = min(client.api_version(FetchRequest), MOST_VERSION)
        self.partitions = {state.pair.source: state for state in partitions}
        for place, state in enumerate(self.partitions.values()):
            state.turn = place % FETCHES_IN_FLIGHT
        self._by_id = {(state.pair.source_topic_id, state.pair.partition): state for state in self.partitions.values()}
        self.refused: list[Finding] = []
        self.failure: Exception | None = None

    async def run(self) -> None:
        """Fetch until every range is read or the reader is closed; a failure is kept for whoever takes the parcels."""
        try:
            while not self._closed and self._unread():
                await self._find_brokers()
                led = {(state.broker, state.turn) for state in self._unread() if state.broker is not None}
                for node_id, turn in led - self._serving.keys():
                    self._serving[node_id, turn] = self._client.spawn(self._serve(node_id, turn))
                if homeless := [state for state in self._unread() if state.broker is None]:
                    await self._pause(homeless)
                elif self._unread():
                    await self._moved.wait()
        except Exception as failure:  # noqa: BLE001 - kept, and raised by the lane itself
            self._fail(failure)
        finally:
            self._closed = True
            self._room.notify()
            for serving in list(self._serving.values()):
                await serving
            self._arrived.notify()

    def close(self) -> None:
        """Fetch no more; an answer that is still under way is dropped."""
        self._closed = True
        self._room.notify()
        self._moved.notify()

    def take(self, partition: TopicPartition) -> Parcel | None:
        """The partition's next parcel, if one has arrived; who takes it says when it is done with."""
        state = self.partitions[partition]
        return state.parcels.popleft() if state.parcels else None

    def done_with(self, partition: TopicPartition, parcel: Parcel) -> None:
        """Make room for what a parcel's batch took up in memory."""
        if parcel.batch is not None:
            self.partitions[partition].held_bytes -= parcel.batch.size_bytes
            self._room.notify()

    def _unread(self) -> list[SourcePartitionState]:
        return [state for state in self.partitions.values() if not state.exhausted]

    async def _find_brokers(self) -> None:
        homeless = [state for state in self._unread() if state.broker is None]
        if not homeless:
            return
        topics = {state.pair.source_topic for state in homeless}
        try:
            metadata = await self._client.metadata(topics)
        except ClusterUnreachableError:
            # Whoever was asked may be the very broker that went away; it is not the next to be asked.
            metadata = await self._client.metadata(topics)
        for state in homeless:
            partition = _partition(metadata, state.pair.source)
            known = metadata.topics.get(state.pair.source_topic)
            if known is not None and known.topic_id not in (None, state.pair.source_topic_id):
                self._refuse(
                    state,
                    FindingKind.RECREATED,
                    f"cluster {self._client.alias}: {state.pair.source_topic} was deleted and created again while "
                    "it was being copied; the next run goes on with the new one",
                )
            elif state.failures > self._settings.patience.retries:
                self._refuse(
                    state,
                    FindingKind.REFUSED,
                    f"cluster {self._client.alias}: {state.pair.source} gave no answer {state.failures} times in a "
                    f"row: it has no leader, or the leader can't be reached, so nothing from offset {state.at} on was "
                    "copied; bring its brokers back, or raise consumer.retries or consumer.retry.backoff.max.ms",
                )
            elif partition is not None and partition.leader is not None:
                state.broker = partition.leader
                state.leader_epoch = NO_LEADER_EPOCH if partition.leader_epoch is None else partition.leader_epoch
                state.at_follower = False
            else:
                state.failures += 1

    async def _serve(self, node_id: int, turn: int) -> None:
        """Fetch from one broker until it has none of the unread partitions of this turn any more."""
        try:
            while own := self._own(node_id, turn):
                wanted = self._with_room(own)
                if wanted:
                    await self._fetch(node_id, turn, wanted)
                else:
                    await self._room.wait()
        except Exception as failure:  # noqa: BLE001 - kept, and raised by the lane itself
            self._fail(failure)
        finally:
            del self._serving[node_id, turn]
            self._moved.notify()

    def _own(self, node_id: int, turn: int) -> list[SourcePartitionState]:
        if self._closed:
            return []
        return [state for state in self._unread() if (state.broker, state.turn) == (node_id, turn)]

    async def _fetch(self, node_id: int, turn: int, wanted: list[SourcePartitionState]) -> None:
        try:
            response = await self._ask(node_id, wanted)
        except ClusterUnreachableError:
            # The broker may be restarting: ask the others who leads now. The lane that waits for us has a deadline.
            # What the other Fetch asks for is left to that one, lest a partition be asked for twice.
            lost = self._own(node_id, turn)
            for state in lost:
                state.lose_broker()
            await self._pause(lost)
            return
        if self._closed:
            return
        self._figures.fetches += 1
        self._figures.quota_s += response.throttle_time_ms / 1000
        self._accept(response)
        if lost := [state for state in wanted if state.broker is None]:
            # The cluster needs a moment to agree on who leads, and would be asked without end meanwhile.
            await self._pause(lost)
        if any(state.broker != node_id for state in wanted):
            self._moved.notify()

    async def _ask(self, node_id: int, wanted: list[SourcePartitionState]) -> Any:
        turn = wanted[0].turn
        room = min(self._settings.max_bytes, self._room_bytes(turn))
        self._asked_bytes[turn] += room
        try:
            response = await self._client.request(fetch_from(wanted, self._settings, self._version, room), node_id)
        finally:
            self._asked_bytes[turn] -= room
            self._room.notify()
        check_fetched(self._client.alias, response)
        return response

    async def _pause(self, lost: list[SourcePartitionState]) -> None:
        """As long as the least tried of them asks for: others may have found their leader again."""
        fewest = min((state.failures for state in lost), default=0)
        await self._client.pause(self._settings.patience.pause_s(fewest))

    def _fail(self, failure: Exception) -> None:
        self.failure = self.failure or failure
        self._closed = True
        self._room.notify()
        self._arrived.notify()

    def _with_room(self, own: list[SourcePartitionState]) -> list[SourcePartitionState]:
        """Those to ask for, the least supplied first: the broker fills its answer in the order of the request."""
        # With little room an answer would hold a batch or two, and most of the time would go into asking.
        turn = own[0].turn
        if self._room_bytes(turn) * 2 < self._bound_bytes(turn):
            return []
        share = self._settings.read_ahead_bytes // max(1, len(self.partitions))
        short = [state for state in own if state.held_bytes < max(share, self._settings.partition_max_bytes)]
        return sorted(short, key=lambda state: state.held_bytes)

    def _bound_bytes(self, turn: int) -> int:
        """Its part of the bound, by partitions: else one turn would fill it, and the lane had half of them to send."""
        members = sum(state.turn == turn for state in self.partitions.values())
        return self._settings.read_ahead_bytes * members // len(self.partitions)

    def _room_bytes(self, turn: int) -> int:
        held = sum(state.held_bytes for state in self.partitions.values() if state.turn == turn)
        return self._bound_bytes(turn) - held - self._asked_bytes[turn]

    def _accept(self, response: Any) -> None:
        for state, answer in self._answers(response):
            if answer.error_code:
                self._refuse_or_retry(state, answer)
            else:
                self._select(state, answer)
        self._arrived.notify()

    def _answers(self, response: Any) -> Iterator[tuple[SourcePartitionState, Any]]:
        """Each partition's answer, with the partition that it is of."""
        for topic in response.responses:
            for answer in topic.partitions:
                if self._version >= BY_ID_VERSION:
                    yield self._by_id[topic.topic_id, answer.partition_index], answer
                else:
                    yield self.partitions[TopicPartition(topic.topic, answer.partition_index)], answer

    def _select(self, state: SourcePartitionState, answer: Any) -> None:
        diverging = answer.diverging_epoch
        if diverging is not None and diverging.end_offset >= 0:
            self._refuse(
                state,
                FindingKind.TRUNCATED,
                f"cluster {self._client.alias}: {state.pair.source}: the log was cut at {diverging.end_offset}, before "
                f"offset {state.at} that was read from it: records that were copied are gone from the source, as after "
                "an unclean leader election; compare with `twinlog reconcile`",
            )
            return
        if answer.preferred_read_replica is not None and answer.preferred_read_replica >= 0:
            state.broker, state.at_follower = answer.preferred_read_replica, True
            return
        if not answer.records:
            return
        self._figures.fetched_bytes += len(answer.records)
        source = SourcePartition(self._client.alias, state.pair.source_topic, state.pair.partition)
        try:
            selection = select_from(answer, source, state.at, state.stop, state.max_batch_bytes)
        except BatchTooLargeError as too_large:
            self._refuse(state, FindingKind.TOO_LARGE, str(too_large))
            return
        except CorruptBatchError as damage:
            state.damaged += 1
            if state.damaged >= TIMES_DAMAGED:
                self._refuse(state, FindingKind.CORRUPT, str(damage))
            return
        state.damaged = 0
        for batch, epoch in zip(selection.batches, selection.epochs, strict=True):
            state.parcels.append(Parcel(batch, batch.runs[-1].source_end, epoch))
            state.held_bytes += batch.size_bytes
        if selection.trailing.total:
            state.parcels.append(Parcel(None, selection.end, selection.last_epoch, selection.trailing))
        state.read_to(selection.end, selection.last_epoch)

    def _refuse_or_retry(self, state: SourcePartitionState, answer: Any) -> None:
        # A replica that lags behind its leader may not have the offset yet; the leader knows better.
        if state.at_follower or is_passing(answer.error_code):
            state.lose_broker()
            return
        kind, why = reading_refused(state, answer, self._client.principal)
        self._refuse(state, kind, f"cluster {self._client.alias}: {state.pair.source}: {why}")

    def _refuse(self, state: SourcePartitionState, kind: FindingKind, message: str) -> None:
        state.refused = True
        self.refused.append(Finding(kind, state.pair.source, state.at, message))


def _partition(metadata: ClusterMetadata, partition: TopicPartition) -> Partition | None:
    topic = metadata.topics.get(partition.topic)
    if topic is None or partition.partition >= len(topic.partitions):
        return None
    return topic.partitions[partition.partition]
