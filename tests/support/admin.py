"""confluent-kafka's AdminClient for a cluster as Twinlog reaches it, quiet on standard error, errors in our words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import confluent_kafka
from confluent_kafka.admin import AdminClient

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.failures import Failures
from twinlog.cluster.secrets import mask
from twinlog.errors import ConfigurationError

_HEARD_AT_MOST = 100


def admin_of(access: ClusterAccess) -> Admin:
    """A client with the settings that Twinlog's own clients of librdkafka get. It connects when it is first used."""
    return Admin(access.alias, *access._librdkafka())


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
            super().__init__({**config, "log_level": 0, **callbacks})
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
