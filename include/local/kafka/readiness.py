"""When a local cluster is ready: every broker itself answers, and knows all others that run and a controller.

An open port says nothing: a broker listens before it has caught up with the cluster's metadata. Nor does one broker
speak for the others: a user that was just made is known to each of them in its own time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_ASK_S = 3.0


class BrokerProbe:
    """Asks one broker, through one of its listeners, what it knows of its cluster."""

    def __init__(self, node: int, settings: Mapping[str, str], running: Callable[[], set[int]]) -> None:
        """`settings` are librdkafka's, and name this broker alone; `running` are the brokers to be known."""
        self._node = node
        self._settings = dict(settings)
        self._running = running

    def answers(self) -> bool:
        from confluent_kafka import KafkaException

        try:
            # A client of its own for each question: one that has seen other brokers may ask those.
            metadata = self._client().list_topics(timeout=_ASK_S)
        except KafkaException:
            return False  # not yet; the caller keeps the time and the broker's log says why
        # A broker that was killed is among them until the controller has missed it for long enough.
        return (
            metadata.orig_broker_id in {self._node, -1}
            and self._running() <= set(metadata.brokers)
            and metadata.controller_id in metadata.brokers
        )

    def _client(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient(
            {
                **self._settings,
                "reconnect.backoff.max.ms": 200,
                # Refused connections are what is expected here, not news for standard error.
                "log_level": 0,
            }
        )
