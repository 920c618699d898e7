"""Kafka client properties: which a topology may set, what they do, and their values before anybody sets them.

A property that is not in this table is refused when the file is read. Names are Kafka's own; the few of
librdkafka that have no counterpart (PEM files for TLS, user and password for SASL) are taken too.
"""

from __future__ import annotations

from dataclasses import dataclass

from twinlog.model.kinds import Choice, Integer, Kind, Text

ROLES = ("consumer", "producer", "admin")
SIDES = ("source", "target")


@dataclass(frozen=True)
class ClientProperty:
    """One client property; `lan` and `wan` are its values under these profiles, None where it has none."""

    name: str
    doc: str
    roles: tuple[str, ...] = ROLES
    lan: str | None = None
    wan: str | None = None


_CONSUMER = ("consumer",)
_PRODUCER = ("producer",)
_COPYING = ("consumer", "producer")

_TABLE = (
    ClientProperty("client.id", "The name that brokers log and count quotas by.", lan="twinlog", wan="twinlog"),
    ClientProperty(
        "client.rack",
        "The rack to read from, where brokers allow fetching from the nearest.",
        roles=_CONSUMER,
    ),
    ClientProperty("client.dns.lookup", "Whether every address of a broker's name is tried (`use_all_dns_ips`)."),
    # Security
    ClientProperty("security.protocol", "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."),
    ClientProperty("sasl.mechanism", "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER."),
    ClientProperty("sasl.username", "The user, for PLAIN and SCRAM."),
    ClientProperty("sasl.password", "The user's password."),
    ClientProperty("sasl.jaas.config", "Kafka's login line; user and password are taken from it."),
    ClientProperty("sasl.oauthbearer.token.endpoint.url", "Where OAUTHBEARER tokens are fetched."),
    ClientProperty("sasl.oauthbearer.client.id", "The OAuth client."),
    ClientProperty("sasl.oauthbearer.client.secret", "The OAuth client's secret."),
    ClientProperty("sasl.oauthbearer.scope", "The scope asked for."),
    ClientProperty("sasl.oauthbearer.extensions", "SASL extensions sent with the token."),
    ClientProperty("ssl.ca.location", "A PEM file with the certificates to trust."),
    ClientProperty("ssl.certificate.location", "A PEM file with the client's certificate."),
    ClientProperty("ssl.key.location", "A PEM file with the client's private key."),
    ClientProperty("ssl.key.password", "The private key's password."),
    ClientProperty("ssl.truststore.type", "PEM; other stores are refused with the command that converts them."),
    ClientProperty("ssl.truststore.location", "A PEM file with the certificates to trust."),
    ClientProperty("ssl.truststore.password", "That store's password."),
    ClientProperty("ssl.truststore.certificates", "The certificates to trust, as PEM text."),
    ClientProperty("ssl.keystore.type", "PEM; other stores are refused with the command that converts them."),
    ClientProperty("ssl.keystore.location", "A PEM file with the client's certificate and key."),
    ClientProperty("ssl.keystore.password", "That store's password."),
    ClientProperty("ssl.keystore.key", "The client's private key, as PEM text."),
    ClientProperty("ssl.keystore.certificate.chain", "The client's certificate, as PEM text."),
    ClientProperty("ssl.endpoint.identification.algorithm", "`https` checks the broker's name, `none` does not."),
    ClientProperty("ssl.cipher.suites", "The TLS ciphers allowed."),
    # Time-outs, buffers and retries
    ClientProperty("request.timeout.ms", "How long one request may take to be answered.", lan="30000", wan="120000"),
    ClientProperty("socket.connection.setup.timeout.ms", "How long connecting may take.", lan="10000", wan="30000"),
    ClientProperty(
        "socket.connection.setup.timeout.max.ms",
        "The most connecting may take after failures.",
        lan="30000",
        wan="120000",
    ),
    ClientProperty("connections.max.idle.ms", "When an idle connection is closed.", lan="540000", wan="540000"),
    ClientProperty(
        "retries",
        "How often in a row a request that can be retried is, or a leader is looked for.",
        roles=_COPYING,
        lan="30",
        wan="50",
    ),
    ClientProperty("retry.backoff.ms", "The wait before the first retry.", roles=_COPYING, lan="100", wan="500"),
    ClientProperty(
        "retry.backoff.max.ms", "The longest wait between retries.", roles=_COPYING, lan="1000", wan="10000"
    ),
    ClientProperty("reconnect.backoff.ms", "The wait before connecting again.", lan="50", wan="250"),
    ClientProperty("reconnect.backoff.max.ms", "The longest wait between connecting again.", lan="1000", wan="10000"),
    # A fixed size switches off the kernel's own tuning, which does better than any small one.
    ClientProperty(
        "send.buffer.bytes",
        "The socket's send buffer (SO_SNDBUF); -1 leaves it to the system.",
        lan="-1",
        wan="4194304",
    ),
    ClientProperty(
        "receive.buffer.bytes",
        "The socket's receive buffer (SO_RCVBUF); -1 leaves it to the system.",
        lan="-1",
        wan="4194304",
    ),
    # Reading
    ClientProperty("fetch.min.bytes", "A fetch waits for so much.", roles=_CONSUMER, lan="1", wan="1048576"),
    ClientProperty("fetch.max.wait.ms", "And no longer than this.", roles=_CONSUMER, lan="500", wan="1000"),
    ClientProperty("fetch.max.bytes", "The most one fetch brings.", roles=_CONSUMER, lan="8388608", wan="33554432"),
    ClientProperty(
        "max.partition.fetch.bytes",
        "The most one fetch brings of one partition.",
        roles=_CONSUMER,
        lan="4194304",
        wan="8388608",
    ),
    # Writing
    ClientProperty(
        "max.request.size",
        "The most one produce request holds; a batch that is larger goes alone.",
        roles=_PRODUCER,
        lan="8388608",
        wan="16777216",
    ),
    ClientProperty(
        "max.in.flight.requests.per.connection",
        "Produce requests to a partition that are not yet answered, 1 to 5.",
        roles=_PRODUCER,
        lan="5",
        wan="5",
    ),
    ClientProperty(
        "transaction.timeout.ms",
        "When the broker aborts a transaction that nobody ends.",
        roles=_PRODUCER,
        lan="60000",
        wan="300000",
    ),
)

PROPERTIES = {described.name: described for described in _TABLE}

_EXACTLY_ONCE = "copying is transactional and exactly once, which this cannot change"
_NO_GROUP = "planned ranges are read and no group is joined"
_WHOLE_BATCHES = "batches are copied as they are; nothing is collected or compressed again"
_OWN_TIMEOUT = "each operation has its own time-out"
_JAVA = "it names a Java class"
REFUSED = {
    **dict.fromkeys(("acks", "check.crcs", "enable.idempotence", "isolation.level", "transactional.id"), _EXACTLY_ONCE),
    **dict.fromkeys(
        ("auto.offset.reset", "enable.auto.commit", "group.id", "group.instance.id", "group.protocol"),
        _NO_GROUP,
    ),
    **dict.fromkeys(
        ("heartbeat.interval.ms", "max.poll.interval.ms", "max.poll.records", "session.timeout.ms"), _NO_GROUP
    ),
    **dict.fromkeys(("batch.size", "buffer.memory", "compression.type", "linger.ms"), _WHOLE_BATCHES),
    **dict.fromkeys(("default.api.timeout.ms", "delivery.timeout.ms", "max.block.ms"), _OWN_TIMEOUT),
    **dict.fromkeys(("interceptor.classes", "metric.reporters", "partitioner.class"), _JAVA),
    **dict.fromkeys(("key.serializer", "key.deserializer", "value.serializer", "value.deserializer"), _JAVA),
    "metadata.max.age.ms": "who leads is asked for whenever it is needed",
    "sasl.kerberos.service.name": "Kerberos is not supported",
}
"""Properties of Kafka's own clients that people bring along and that mean nothing here, with the reason."""


_KINDS: dict[str, Kind] = {
    "security.protocol": Choice(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
    "sasl.mechanism": Choice(("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")),
    "retries": Integer(0),
    "max.in.flight.requests.per.connection": Integer(1, 5),
    # Kafka writes -1 for "as the operating system has it".
    "send.buffer.bytes": Integer(-1),
    "receive.buffer.bytes": Integer(-1),
    # Empty is how Java's clients say "none" here.
    "ssl.endpoint.identification.algorithm": Choice(("https", "none", "")),
}


def kind_of(name: str) -> Kind:
    """What the value of a client property, named without its role, may be."""
    if name in _KINDS:
        return _KINDS[name]
    return Integer(0) if name.endswith((".ms", ".bytes", ".size")) else Text()


def profile_settings(profile: str, role: str) -> dict[str, str]:
    """What a profile (`lan` or `wan`) sets for clients of one role."""
    values = {item.name: item.wan if profile == "wan" else item.lan for item in _TABLE if role in item.roles}
    return {name: value for name, value in values.items() if value is not None}
