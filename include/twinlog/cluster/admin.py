"""confluent-kafka's AdminClient for one cluster, quiet on standard error and with errors in our words."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import confluent_kafka
from confluent_kafka.admin import AdminClient

from twinlog.cluster.failures import Failures
from twinlog.cluster.secrets import mask
from twinlog.errors import ConfigurationError

_HEARD_AT_MOST = 100


class Admin(AdminClient):
    """An AdminClient; inside `with admin.errors():` it raises a ClusterError instead of a KafkaException."""

    def __init__(
        self,
        alias: str,
        config: Mapping[str, Any],
        token: Callable[[str | None], tuple[str, float]] | None = None,
    ) -> None:
        self._failures = Failures(alias, str(config["bootstrap.servers"]))
        self._heard: list[confluent_kafka.KafkaError] = []
        callbacks: dict[str, Any] = {"error_cb": self._hear}
        if token is not None:
            callbacks["oauth_cb"] = token
        try:
            super().__init__({**config, **callbacks}, logger=_logger())
        except confluent_kafka.KafkaException as error:
            reason = mask(error.args[0].str())
            raise ConfigurationError(f"cluster {alias}: librdkafka does not take these settings: {reason}") from None

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Translate what librdkafka raises in this block, with the reason it heard from the brokers."""
        self._heard.clear()
        try:
            yield
        except confluent_kafka.KafkaException as error:
            self.poll(0)  # serves the callbacks: what brokers said is told to them only
            raise self._failures.of_admin(error.args[0], self._heard) from error

    def _hear(self, error: confluent_kafka.KafkaError) -> None:
        # Bounded: a client that is kept open hears the same of a dead broker again and again.
        if len(self._heard) < _HEARD_AT_MOST:
            self._heard.append(error)


class _MaskingFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = mask(record.getMessage())
        record.args = ()
        return True


def _logger() -> logging.Logger:
    """Where librdkafka's lines go instead of standard error: shown by whoever configures logging."""
    logger = logging.getLogger("twinlog.librdkafka")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
        logger.addFilter(_MaskingFilter())
    return logger
