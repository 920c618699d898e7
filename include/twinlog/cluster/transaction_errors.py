"""What a target broker's error codes mean for a transaction, in our words.

Each is one of four things: a later writer has taken over (fenced; where the transaction may as well have timed out, the
next opening tells), one partition can't go on (refused), something is not allowed or set wrongly, or else the
transaction is rolled back and tried again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafka import errors as kafka_errors
from kafka.protocol.producer import InitProducerIdRequest

from twinlog.cluster.refusals import not_allowed
from twinlog.errors import (
    ClusterError,
    FencedError,
    FencedOrTimedOutError,
    NotAuthorizedError,
    PartitionRefusedError,
    TransactionAbortedError,
)
from twinlog.model.findings import FindingKind
from twinlog.model.offsets import TopicPartition

_NEEDED = {"transactional id": "DESCRIBE and WRITE", "group": "READ", "topic": "WRITE", "cluster": "IDEMPOTENT_WRITE"}

_FENCED = (
    kafka_errors.ProducerFencedError,
    kafka_errors.InvalidProducerEpochError,
    kafka_errors.InvalidProducerIdMappingError,
)
_NOT_ALLOWED = {
    kafka_errors.TopicAuthorizationFailedError: "topic",
    kafka_errors.GroupAuthorizationFailedError: "group",
    kafka_errors.TransactionalIdAuthorizationFailedError: "transactional id",
    kafka_errors.ClusterAuthorizationFailedError: "cluster",
}
_TOO_LARGE = (kafka_errors.MessageSizeTooLargeError, kafka_errors.RecordListTooLargeError)
_WRONG_RECORDS = (
    kafka_errors.InvalidTimestampError,
    kafka_errors.InvalidRecordError,
    kafka_errors.InvalidTopicError,
    kafka_errors.PolicyViolationError,
)


@dataclass(frozen=True, slots=True)
class Refusals:
    """Raises what the answers to one transactional id's requests mean."""

    cluster: str
    principal: str
    transactional_id: str

    def check_written(self, partition: TopicPartition, result: Any) -> None:
        """Raise what a partition's answer to Produce means; nothing where the batch was taken."""
        if not result.error_code:
            return
        error = kafka_errors.for_code(result.error_code)
        what = f"cluster {self.cluster}: {partition} did not take a batch: {result.error_message or error.__name__}"
        if issubclass(error, _TOO_LARGE):
            advice = "raise max.message.bytes of the target topic"
            raise PartitionRefusedError(partition, FindingKind.TOO_LARGE, f"{what}; {advice}")
        if issubclass(error, _WRONG_RECORDS):
            advice = "check the target topic's message.timestamp.* and cleanup.policy settings"
            raise PartitionRefusedError(partition, FindingKind.REFUSED, f"{what}; {advice}")
        self.check(result.error_code, "Produce", partition)

    def check(self, error_code: int, doing: str, partition: TopicPartition | None, group: str | None = None) -> None:
        """Raise what a broker's error code means for the transaction; nothing on 0."""
        if not error_code:
            return
        error = kafka_errors.for_code(error_code)
        what = f"cluster {self.cluster}: {self.transactional_id}: {doing}"
        if partition is not None:
            what = f"{what} to {partition}"
        if issubclass(error, _FENCED):
            if doing == InitProducerIdRequest.name:
                raise FencedError(f"{what}: {error.__name__}; another writer has taken over")
            raise FencedOrTimedOutError(
                f"{what}: {error.__name__}; another writer has taken over, or the transaction outlived "
                "transaction.timeout.ms: raise it among the producer's settings, or lower the flow's "
                "transaction.seconds"
            )
        if error in _NOT_ALLOWED:
            refused = self.not_allowed(_NOT_ALLOWED[error], doing, partition, group)
            if partition is None or _NOT_ALLOWED[error] != "topic":
                raise refused
            raise PartitionRefusedError(partition, FindingKind.NOT_ALLOWED, str(refused))
        if issubclass(error, kafka_errors.InvalidTransactionTimeoutError):
            raise ClusterError(
                f"{what}: {error.__name__}; raise the broker's transaction.max.timeout.ms or lower the producer's "
                "transaction.timeout.ms"
            )
        raise TransactionAbortedError(f"{what}: {error.__name__}")

    def not_allowed(
        self, resource: str, doing: str, partition: TopicPartition | None = None, group: str | None = None
    ) -> NotAuthorizedError:
        """The missing permission on a kind of resource that these transactions use."""
        name = {"transactional id": self.transactional_id, "group": group, "topic": partition and partition.topic}
        return not_allowed(
            self.cluster,
            self.principal,
            _NEEDED[resource],
            f"{resource} {name.get(resource) or 'kafka-cluster'}",
            f"it can't write there in transactions ({doing} was refused)",
        )
