"""When a local cluster is ready: every broker itself answers, and knows all the others and a controller.

An open port says nothing: a broker listens before it has caught up with the cluster's metadata.
"""

from __future__ import annotations

from typing import Any

from local.ports import HOST

_ASK_S = 3.0


class BrokerProbe:
    """Asks one broker, through its PLAINTEXT listener, what it knows of its cluster."""

    def __init__(self, node: int, port: int, expected: int) -> None:
        self._node = node
        self._address = f"{HOST}:{port}"
        self._expected = set(range(expected))

    def answers(self) -> bool:
        from confluent_kafka import KafkaException

        try:
            # A client of its own for each question: one that has seen other brokers may ask those.
            metadata = self._client().list_topics(timeout=_ASK_S)
        except KafkaException:
            return False  # not yet; the caller keeps the time and the broker's log says why
        return (
            metadata.orig_broker_id in {self._node, -1}
            and set(metadata.brokers) == self._expected
            and metadata.controller_id in self._expected
        )

    def _client(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient(
            {
                "bootstrap.servers": self._address,
                "reconnect.backoff.max.ms": 200,
                # Refused connections are what is expected here, not news for standard error.
                "log_level": 0,
            }
        )
