"""Records with headers and times of their own, each written exactly once and in order, outside any transaction.

librdkafka's idempotent producer: what it sends again after a lost acknowledgement the broker takes once. It needs no
permission but to write to the topic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlog.cluster.failures import Failures
from twinlog.cluster.secrets import mask
from twinlog.errors import ClusterUnreachableError, ConfigurationError
from twinlog.model.offsets import TopicPartition

if TYPE_CHECKING:
    import confluent_kafka

_MUST = {"enable.idempotence": True, "acks": "all"}
_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class RecordToWrite:
    """One record, as readers are to see it."""

    partition: TopicPartition
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


class ExactWriter:
    """Writes to one cluster; nothing is left unsaid of a record that the cluster did not take."""

    def __init__(
        self,
        alias: str,
        config: Mapping[str, Any],
        token: Callable[[str | None], tuple[str, float]] | None = None,
    ) -> None:
        import confluent_kafka  # noqa: PLC0415 - Spark's tasks import this module, and have no use for that library

        self._failures = Failures(alias, str(config["bootstrap.servers"]))
        self._heard: list[confluent_kafka.KafkaError] = []
        self._refused: list[confluent_kafka.KafkaError] = []
        callbacks: dict[str, Any] = {"error_cb": self._heard.append}
        if token is not None:
            callbacks["oauth_cb"] = token
        try:
            self._producer = confluent_kafka.Producer({**config, "log_level": 0, **_MUST, **callbacks})
        except confluent_kafka.KafkaException as error:
            reason = mask(error.args[0].str())
            raise ConfigurationError(f"cluster {alias}: librdkafka does not take these settings: {reason}") from None

    def write(self, records: Iterable[RecordToWrite], timeout_s: float) -> None:
        """Write them in order and return when all are acknowledged; what is not within the time is an error."""
        deadline = time.monotonic() + timeout_s
        for record in records:
            while not self._queued(record):
                if time.monotonic() > deadline:
                    raise self._not_written(timeout_s)
                self._producer.poll(_PAUSE_S)
            self._producer.poll(0)
        left = self._producer.flush(max(0.0, deadline - time.monotonic()))
        if self._refused:
            raise self._failures.of_admin(self._refused[0], self._heard)
        if left:
            raise self._not_written(timeout_s)

    def _queued(self, record: RecordToWrite) -> bool:
        """Whether there was room for it among those that wait to be sent."""
        try:
            self._producer.produce(
                record.partition.topic,
                record.value,
                record.key,
                record.partition.partition,
                on_delivery=self._delivered,
                timestamp=record.timestamp_ms,
                headers=list(record.headers),
            )
        except BufferError:
            return False
        return True

    def _not_written(self, timeout_s: float) -> ClusterUnreachableError:
        left = len(self._producer)
        self._producer.purge()
        reason = self._heard[0].str() if self._heard else "no acknowledgement"
        return self._failures.unreachable(f"{left:,} records were not written within {timeout_s:.0f} s: {reason}")

    def _delivered(self, error: confluent_kafka.KafkaError | None, _: confluent_kafka.Message) -> None:
        if error is not None:
            self._refused.append(error)
