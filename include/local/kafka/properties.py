"""Kafka properties of a local cluster: of its brokers and of the clients that come to it.

Pure: a specification and the ports, in; names and values, out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from local.certificates import Certificates
from local.errors import PreconditionError
from local.kafka.spec import PLAINTEXT, SASL_SSL, SUPER_USER, TLS, KafkaSpec
from local.ports import HOST

SCRAM_MECHANISM = "SCRAM-SHA-512"

_CONTROLLER = "CONTROLLER"
_PROTOCOLS = {PLAINTEXT: "PLAINTEXT", TLS: "SSL", SASL_SSL: "SASL_SSL", _CONTROLLER: "PLAINTEXT"}
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass(frozen=True)
class NodePorts:
    """The ports of one node, fixed for its life so that it can be restarted."""

    controller: int
    listeners: Mapping[str, int]

    @property
    def all(self) -> tuple[int, ...]:
        return (self.controller, *self.listeners.values())


def rack(node: int) -> str:
    """Each node stands in a rack of its own."""
    return f"rack-{node}"


def broker(
    spec: KafkaSpec,
    node: int,
    ports: tuple[NodePorts, ...],
    data: Path,
    certificates: Certificates | None,
) -> dict[str, str]:
    """The server.properties of one node; `ports` are those of all nodes, in their order."""
    mine = {_CONTROLLER: ports[node].controller, **ports[node].listeners}
    properties = {
        "node.id": str(node),
        "process.roles": "broker,controller",
        "broker.rack": rack(node),
        "controller.quorum.voters": ",".join(f"{i}@{HOST}:{p.controller}" for i, p in enumerate(ports)),
        "controller.listener.names": _CONTROLLER,
        "inter.broker.listener.name": PLAINTEXT,
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in mine.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{_PROTOCOLS[name]}" for name in mine),
        "log.dirs": str(data),
    }
    properties |= _small(spec.brokers)
    if certificates is not None:
        properties |= _tls(spec, certificates)
    if SASL_SSL in spec.listeners:
        properties |= _sasl(spec)
    if spec.authorizer:
        properties |= {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:ANONYMOUS;User:{SUPER_USER}",
        }
    return properties | dict(spec.properties)


def _small(brokers: int) -> dict[str, str]:
    """What suits a cluster that shares a laptop with another one, Spark and Airflow."""
    replicas = str(min(3, brokers))
    in_sync = str(min(2, brokers))
    return {
        # A killed broker may come back when its session has ended, not before.
        "broker.session.timeout.ms": "6000",
        "broker.heartbeat.interval.ms": "1000",
        "num.network.threads": "2",
        "num.io.threads": "2",
        "num.replica.fetchers": "1",
        "num.recovery.threads.per.data.dir": "1",
        "background.threads": "2",
        "log.cleaner.threads": "1",
        "log.cleaner.dedupe.buffer.size": str(16 << 20),
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "5",
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.num.partitions": "5",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": "5",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
        "default.replication.factor": replicas,
    }


def _tls(spec: KafkaSpec, certificates: Certificates) -> dict[str, str]:
    properties = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.broker_keystore),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority),
    }
    if spec.client_certificates:
        properties[f"listener.name.{TLS.lower()}.ssl.client.auth"] = "required"
    return properties


def _sasl(spec: KafkaSpec) -> dict[str, str]:
    prefix = f"listener.name.{SASL_SSL.lower()}"
    properties: dict[str, str] = {}
    mechanisms = []
    if spec.scram:
        mechanisms.append(SCRAM_MECHANISM)
        properties[f"{prefix}.{SCRAM_MECHANISM.lower()}.sasl.jaas.config"] = f"{_SCRAM_MODULE} required;"
    if spec.plain:
        mechanisms.append("PLAIN")
        users = " ".join(f'user_{user}="{_escaped(word)}"' for user, word in spec.plain.items())
        properties[f"{prefix}.plain.sasl.jaas.config"] = f"{_PLAIN_MODULE} required {users};"
    properties[f"{prefix}.sasl.enabled.mechanisms"] = ",".join(mechanisms)
    return properties


def client(
    spec: KafkaSpec,
    listener: str,
    ports: tuple[NodePorts, ...],
    certificates: Certificates | None,
    user: str | None,
) -> dict[str, str]:
    """What a Java client is given to come in by `listener`, as `user` or else the first one."""
    if listener not in spec.listeners:
        raise PreconditionError(f"Cluster {spec.name} has no listener {listener}, only {', '.join(spec.listeners)}.")
    properties = {
        "bootstrap.servers": ",".join(f"{HOST}:{node.listeners[listener]}" for node in ports),
        "security.protocol": _PROTOCOLS[listener],
    }
    if listener == PLAINTEXT or certificates is None:
        return properties
    properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(certificates.authority)}
    if listener == SASL_SSL:
        return properties | _credentials(spec, user)
    if spec.client_certificates:
        properties |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(certificates.client_keystore)}
    return properties


def _credentials(spec: KafkaSpec, user: str | None) -> dict[str, str]:
    user = user or next(iter({**spec.scram, **spec.plain}))
    if user in spec.scram:
        mechanism, module, password = SCRAM_MECHANISM, _SCRAM_MODULE, spec.scram[user]
    elif user in spec.plain:
        mechanism, module, password = "PLAIN", _PLAIN_MODULE, spec.plain[user]
    else:
        raise PreconditionError(f"Cluster {spec.name} has no user {user}.")
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="{user}" password="{_escaped(password)}";',
    }


def _escaped(value: str) -> str:
    """As it stands between the quotes of a JAAS value."""
    return value.replace("\\", "\\\\").replace('"', '\\"')


def as_file(properties: Mapping[str, str]) -> str:
    """The text of a Java properties file; Kafka reads it as ISO 8859-1, with a backslash as the escape."""
    lines = (f"{name}={value}".replace("\\", "\\\\") for name, value in properties.items())
    return "\n".join(lines) + "\n"
