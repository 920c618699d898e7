"""What a broker's errors in answer to a Fetch mean for reading on."""

from __future__ import annotations

from typing import Any

from kafka import errors as kafka_errors

from twinlog.cluster.source_partition import SourcePartitionState
from twinlog.errors import ClusterError, ClusterUnreachableError
from twinlog.model.findings import FindingKind

_TRY_AGAIN = (
    kafka_errors.NotLeaderForPartitionError,
    kafka_errors.LeaderNotAvailableError,
    kafka_errors.ReplicaNotAvailableError,
    kafka_errors.FencedLeaderEpochError,
    kafka_errors.UnknownLeaderEpochError,
    kafka_errors.OffsetNotAvailableError,
    kafka_errors.KafkaStorageError,
)
_GONE = (
    kafka_errors.UnknownTopicIdError,
    kafka_errors.InconsistentTopicIdError,
    kafka_errors.UnknownTopicOrPartitionError,
)


def check_fetched(cluster: str, response: Any) -> None:
    """Raise what an error of the whole answer means; a partition's own is another matter."""
    if not response.error_code:
        return
    error = kafka_errors.for_code(response.error_code)
    sentence = f"cluster {cluster}: Fetch was refused: {error.__name__}"
    raise (ClusterUnreachableError if error.retriable else ClusterError)(sentence)


def is_passing(error_code: int) -> bool:
    """Whether another broker, or this one a little later, will answer."""
    return issubclass(kafka_errors.for_code(error_code), _TRY_AGAIN)


def is_gone(error_code: int) -> bool:
    """Whether the topic is not there, or the broker has not heard of it yet."""
    return issubclass(kafka_errors.for_code(error_code), _GONE)


def reading_refused(state: SourcePartitionState, answer: Any, principal: str) -> tuple[FindingKind, str]:
    """Why a partition can't be read any further: the kind of it, and a sentence for people."""
    error = kafka_errors.for_code(answer.error_code)
    if issubclass(error, kafka_errors.OffsetOutOfRangeError):
        return (
            FindingKind.EXPIRED,
            f"offset {state.at} went while it was being copied (the log starts at {answer.log_start_offset}); the "
            "next run counts what was lost and goes on",
        )
    if issubclass(error, _GONE):
        return (
            FindingKind.RECREATED,
            f"the topic with id {state.pair.source_topic_id} is gone: it was deleted, or deleted and created "
            "again, while it was being copied",
        )
    if issubclass(error, kafka_errors.TopicAuthorizationFailedError):
        return (
            FindingKind.NOT_ALLOWED,
            f"{principal} is not allowed READ on topic {state.pair.source_topic}, so nothing of it is copied",
        )
    return FindingKind.REFUSED, f"reading at offset {state.at}: {error.__name__}"
