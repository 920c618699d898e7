"""One transactional id on the target: the only way in which a lane writes.

What always holds:
- opening fences every earlier writer of the id and rolls back what it had open;
- opening *again* names the producer id and epoch that we had, so a writer that was fenced meanwhile is told so and
  can't fence its successor; unless an opening of our own had no answer, which may have fenced who we were: then we are
  nobody again, and whoever opens the next time makes sure first that nobody came after us;
- after any error the transaction is rolled back or left to the next opener: nothing half-written becomes visible.

The request versions are those from before KIP-890, as one set: partitions are added by an explicit request, and
the epoch changes only when the id is opened. Brokers of every version since 2.5 take them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any

from kafka import errors as kafka_errors
from kafka.protocol.metadata import CoordinatorType
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

from twinlog.cluster.coordinators import RESOURCES
from twinlog.cluster.produce_request import Pieces, ProduceBatches
from twinlog.cluster.raw import RawClient
from twinlog.cluster.transaction_errors import Refusals
from twinlog.errors import (
    ClusterUnreachableError,
    FencedError,
    FencedOrTimedOutError,
    NotAuthorizedError,
    TransactionAbortedError,
)
from twinlog.model.offsets import TopicPartition
from twinlog.model.positions import Position
from twinlog.wire.outgoing import OutgoingBatch
from twinlog.wire.restamp import next_sequence, restamp

NO_PRODUCER = -1

INIT_PRODUCER_ID_VERSION = 4
ADD_PARTITIONS_VERSION = 3
ADD_OFFSETS_VERSION = 3
TXN_OFFSET_COMMIT_VERSION = 3
END_TXN_VERSION = 3

SHORTEST_PAUSE_S = 0.002
RETRY_PAUSE_S = 0.02
MOST_PAUSE_S = 0.5

_COORDINATOR_MOVED = (
    kafka_errors.NotCoordinatorError,
    kafka_errors.CoordinatorNotAvailableError,
)
_NOT_YET = (kafka_errors.ConcurrentTransactionsError, kafka_errors.CoordinatorLoadInProgressError)
"""The coordinator is still ending the transaction before, or reading its log: that takes its time and is no failure."""
_NOT_ATTEMPTED = kafka_errors.OperationNotAttemptedError.errno


class TransactionalWriter:
    """Produces to the target's partitions in transactions under one transactional id."""

    def __init__(self, client: RawClient, transactional_id: str, *, timeout_ms: int, retries: int) -> None:
        self._client = client
        self._refusals = Refusals(client.alias, client.principal, transactional_id)
        self._timeout_ms = timeout_ms
        self._retries = retries
        self._sequences: dict[TopicPartition, int] = {}
        self._added: set[TopicPartition] = set()
        self._offsets_added = False
        self.transactional_id = transactional_id
        self.producer_id = NO_PRODUCER
        self.producer_epoch = NO_PRODUCER
        self.quota_s = 0.0
        """That brokers asked us to wait because a quota is used up."""
        self._opening_unanswered = False

    async def open(self) -> None:
        """Become the id's writer. The first call fences whoever was; a later one only if nobody came after us."""
        # A coordinator that was never asked for has no transaction log yet: FindCoordinator creates it.
        try:
            response = await self._ask_coordinator(
                CoordinatorType.TRANSACTION,
                self.transactional_id,
                lambda: InitProducerIdRequest(
                    transactional_id=self.transactional_id,
                    transaction_timeout_ms=self._timeout_ms,
                    producer_id=self.producer_id,
                    producer_epoch=self.producer_epoch,
                    version=INIT_PRODUCER_ID_VERSION,
                ),
                lambda answer: [(answer.error_code, None)],
            )
        except FencedError as fenced:
            if not self._opening_unanswered:
                raise
            self._become(NO_PRODUCER, NO_PRODUCER)
            raise FencedOrTimedOutError(f"{fenced}, or it was an earlier try of ours that had no answer") from fenced
        self._become(response.producer_id, response.producer_epoch)

    def _become(self, producer_id: int, producer_epoch: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self._opening_unanswered = False
        self._sequences.clear()
        self._forget_transaction()

    @property
    def in_transaction(self) -> bool:
        return bool(self._added) or self._offsets_added

    async def add_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Tell the coordinator that the transaction will write to these; before the first Produce to each."""
        new = sorted(set(partitions) - self._added)
        if not new:
            return
        topics = [
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
                name=topic, partitions=[each.partition for each in members], version=ADD_PARTITIONS_VERSION
            )
            for topic, members in groupby(new, key=lambda each: each.topic)
        ]
        await self._ask_coordinator(
            CoordinatorType.TRANSACTION,
            self.transactional_id,
            lambda: AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.producer_epoch,
                v3_and_below_topics=topics,
                version=ADD_PARTITIONS_VERSION,
            ),
            lambda answer: [
                (result.partition_error_code, TopicPartition(topic.name, result.partition_index))
                for topic in answer.results_by_topic_v3_and_below
                for result in topic.results_by_partition
                # Of several partitions one is refused, and the others just not added for its sake.
                if result.partition_error_code != _NOT_ATTEMPTED
            ],
        )
        self._added.update(new)

    def take_sequence(self, partition: TopicPartition, records: int) -> int:
        """The base sequence of the next batch to `partition`; the one after it follows on, wrapping as Kafka does."""
        base = self._sequences.get(partition, 0)
        self._sequences[partition] = next_sequence(base, records)
        return base

    def stamp(self, partition: TopicPartition, batch: OutgoingBatch) -> Pieces:
        """The batch as this writer sends it next to `partition`: under its id and epoch, and in sequence."""
        return restamp(
            batch,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.take_sequence(partition, batch.record_count),
        )

    async def produce(self, node_id: int | None, batches: Mapping[TopicPartition, Pieces]) -> dict[TopicPartition, int]:
        """Send one batch to each partition, all led by `node_id`; answers the base offset each was given."""
        request = ProduceBatches(self.transactional_id, self._timeout_ms, batches)
        response = await self._client.request(request, node_id)
        self.quota_s += response.throttle_time_ms / 1000
        offsets = {}
        for topic in response.responses:
            for result in topic.partition_responses:
                partition = TopicPartition(topic.name, result.index)
                self._refusals.check_written(partition, result)
                offsets[partition] = result.base_offset
        return offsets

    async def commit_positions(self, group: str, positions: Mapping[TopicPartition, Position]) -> None:
        """Commit the positions under `group` as part of the transaction."""
        if not self._offsets_added:
            await self._ask_coordinator(
                CoordinatorType.TRANSACTION,
                self.transactional_id,
                lambda: AddOffsetsToTxnRequest(
                    transactional_id=self.transactional_id,
                    producer_id=self.producer_id,
                    producer_epoch=self.producer_epoch,
                    group_id=group,
                    version=ADD_OFFSETS_VERSION,
                ),
                lambda answer: [(answer.error_code, None)],
                committing=group,
            )
            self._offsets_added = True
        await self._ask_coordinator(
            CoordinatorType.GROUP,
            group,
            lambda: self._offset_commit(group, positions),
            lambda answer: [
                (result.error_code, TopicPartition(topic.name, result.partition_index))
                for topic in answer.topics
                for result in topic.partitions
            ],
            committing=group,
        )

    async def commit(self) -> None:
        await self._end(committed=True)

    async def abort(self) -> None:
        await self._end(committed=False)

    async def _end(self, *, committed: bool) -> None:
        if not self.in_transaction:
            return
        await self._ask_coordinator(
            CoordinatorType.TRANSACTION,
            self.transactional_id,
            lambda: EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                committed=committed,
                version=END_TXN_VERSION,
            ),
            lambda answer: [(answer.error_code, None)],
        )
        self._forget_transaction()

    def _forget_transaction(self) -> None:
        self._added.clear()
        self._offsets_added = False

    def _offset_commit(self, group: str, positions: Mapping[TopicPartition, Position]) -> TxnOffsetCommitRequest:
        version = TXN_OFFSET_COMMIT_VERSION
        Topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic  # noqa: N806 - a class
        topics = [
            Topic(
                name=topic,
                partitions=[
                    Topic.TxnOffsetCommitRequestPartition(
                        partition_index=partition.partition,
                        committed_offset=positions[partition].offset,
                        committed_leader_epoch=-1,
                        committed_metadata=positions[partition].metadata(),
                        version=version,
                    )
                    for partition in members
                ],
                version=version,
            )
            for topic, members in groupby(sorted(positions), key=lambda each: each.topic)
        ]
        return TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=topics,
            version=version,
        )

    async def _ask_coordinator(
        self,
        kind: CoordinatorType,
        key: str,
        make_request: Callable[[], Any],
        outcomes: Callable[[Any], list[tuple[int, TopicPartition | None]]],
        committing: str | None = None,
    ) -> Any:
        """Send to the coordinator, wherever it is now, until it answers something that time will not change.

        `committing` is the group whose offsets the request is about, if it is about a group's.
        """
        moved = False
        failures = 0
        waits = 0
        patience_ends = time.monotonic() + self._timeout_ms / 1000
        while True:
            request = make_request()
            try:
                node_id = await self._client.coordinator(kind, key, refresh=moved)
                response = await self._client.request(request, node_id)
            except ClusterUnreachableError as lost:
                last: Exception = lost
                moved = True
                failures += 1
                self._opening_unanswered |= isinstance(request, InitProducerIdRequest)
            except NotAuthorizedError as refused:
                raise self._refusals.not_allowed(RESOURCES[kind], request.name, group=committing) from refused
            else:
                problem, partition = next((each for each in outcomes(response) if each[0]), (0, None))
                error = kafka_errors.for_code(problem)
                if not issubclass(error, _COORDINATOR_MOVED + _NOT_YET):
                    self._refusals.check(problem, request.name, partition, committing)
                    return response
                last = error()
                moved = issubclass(error, _COORDINATOR_MOVED)
                failures += moved
                waits += 1
            if failures > self._retries or time.monotonic() > patience_ends:
                raise TransactionAbortedError(
                    f"cluster {self._client.alias}: {self.transactional_id}: {request.name} was given up after "
                    f"{failures} failures: {str(last) or type(last).__name__}"
                ) from last
            await self._client.pause(_pause_s(failures, waits))


def _pause_s(failures: int, waits: int) -> float:
    """The markers of a transaction are written within milliseconds as a rule, and its lane stands still meanwhile."""
    if not failures:
        return min(SHORTEST_PAUSE_S * 2.0 ** min(waits - 1, 10), RETRY_PAUSE_S)
    return min(RETRY_PAUSE_S * 2.0 ** min(failures, 10), MOST_PAUSE_S)
