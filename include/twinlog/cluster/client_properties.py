"""Apache Kafka's client properties: their counterparts in the two libraries, and why others have no effect.

A table, and nothing else. Security has its own module; what the copier honours itself is `COPIER`.
"""

from __future__ import annotations

from dataclasses import dataclass

from twinlog.model.clients import REFUSED


@dataclass(frozen=True, slots=True)
class Shared:
    """A property and its names in the libraries; None where a library has no counterpart."""

    librdkafka: str | None
    kafka_python: str | None
    number: bool = True
    negative_is_default: bool = False
    """Kafka writes -1 for "as the operating system has it"."""


SHARED = {
    "bootstrap.servers": Shared("bootstrap.servers", "bootstrap_servers", number=False),
    "client.id": Shared("client.id", "client_id", number=False),
    "client.dns.lookup": Shared("client.dns.lookup", "client_dns_lookup", number=False),
    "connections.max.idle.ms": Shared("connections.max.idle.ms", "connections_max_idle_ms"),
    "reconnect.backoff.ms": Shared("reconnect.backoff.ms", "reconnect_backoff_ms"),
    "reconnect.backoff.max.ms": Shared("reconnect.backoff.max.ms", "reconnect_backoff_max_ms"),
    # librdkafka's own request.timeout.ms is how long a broker may wait for acks, another thing.
    "request.timeout.ms": Shared("socket.timeout.ms", "request_timeout_ms"),
    "retry.backoff.ms": Shared("retry.backoff.ms", None),
    "retry.backoff.max.ms": Shared("retry.backoff.max.ms", None),
    "send.buffer.bytes": Shared("socket.send.buffer.bytes", None, negative_is_default=True),
    "receive.buffer.bytes": Shared("socket.receive.buffer.bytes", None, negative_is_default=True),
    "socket.connection.setup.timeout.ms": Shared(
        "socket.connection.setup.timeout.ms", "socket_connection_setup_timeout_ms"
    ),
    "socket.connection.setup.timeout.max.ms": Shared(None, "socket_connection_setup_timeout_max_ms"),
}

LIBRDKAFKA_ONLY = frozenset(
    {
        "broker.address.family",
        "broker.address.ttl",
        "enable.sparse.connections",
        "log.connection.close",
        "socket.keepalive.enable",
        "socket.max.fails",
        "socket.nagle.disable",
        "socket.timeout.ms",
    }
)
"""Found in Airflow's Kafka connections, whose extra is librdkafka's configuration."""

_COPIER = "the copier honours it, connections do not need it"
COPIER = frozenset(
    {
        "batch.size",
        "client.rack",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "max.in.flight.requests.per.connection",
        "max.partition.fetch.bytes",
        "max.request.size",
        "retries",
        "transaction.timeout.ms",
    }
)
"""Read by the copier and the operations, which take them from the same settings."""

_JAVA = "it names something of Java's"
_GROUP = "Twinlog reads planned ranges and joins no group"
_BATCHES = "whole record batches are copied as they are; nothing is compressed again"
_AIRFLOW = "it belongs to Airflow's own Kafka hooks"

NOT_APPLYING = {
    **dict.fromkeys(sorted(COPIER), _COPIER),
    # Refused in a topology; an Airflow connection that other DAGs use too may hold them.
    **REFUSED,
    **dict.fromkeys(
        ("auto.include.jmx.reporter", "config.providers", "partition.assignment.strategy", "security.providers"), _JAVA
    ),
    **dict.fromkeys(("auto.commit.interval.ms", "exclude.internal.topics", "group.remote.assignor"), _GROUP),
    **dict.fromkeys(("compression.gzip.level", "compression.lz4.level", "compression.zstd.level"), _BATCHES),
    **dict.fromkeys(("error_cb", "stats_cb", "oauth_cb"), _AIRFLOW),
    "allow.auto.create.topics": "Twinlog never has a broker create a topic by itself",
    "enable.metrics.push": "the libraries push no client metrics here",
    "metadata.recovery.strategy": "every run starts from the bootstrap servers",
    "metadata.max.idle.ms": "metadata is read when it is needed",
    "ssl.protocol": "the libraries take TLS 1.2 or later",
    "ssl.enabled.protocols": "the libraries take TLS 1.2 or later",
    "ssl.provider": _JAVA,
    "ssl.keymanager.algorithm": _JAVA,
    "ssl.trustmanager.algorithm": _JAVA,
    "ssl.secure.random.implementation": _JAVA,
    "ssl.engine.factory.class": _JAVA,
}

NOT_APPLYING_PREFIXES = {
    "metrics.": _JAVA,
    "confluent.": "it belongs to Confluent's Java clients",
    "sasl.kerberos.": "Kerberos is not supported",
    "sasl.login.": "it tunes Java's login thread",
    "sasl.oauthbearer.jwks.": "it belongs to brokers",
    "share.": _GROUP,
}
