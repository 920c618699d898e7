"""Starts local Kafka clusters, all at once, and stops them together.

After `start` every broker of every cluster has answered and lets its users in; after `stop`, the end of the `with`,
or the end of this process in any way, none is running. Where one fails to start, all are stopped before the error
goes out.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from local import certificates, kafka_jars, ports, preconditions, processes
from local.errors import StartError
from local.kafka import properties, users
from local.kafka.node import Java, Node
from local.kafka.readiness import BrokerProbe
from local.kafka.spec import PLAINTEXT, SASL_SSL, KafkaSpec

Report = Callable[[str], None]

_NEEDED_BYTES = 1 << 30
_START_TIMEOUT_S = 120.0
_STOP_GRACE_S = 10.0


class KafkaCluster:
    """One cluster; brokers are named by their node number, from 0."""

    def __init__(self, spec: KafkaSpec, folder: Path, java: Java) -> None:
        self.spec = spec
        self.name = spec.name
        self.folder = folder
        self._ports = _choose_ports(spec)
        self._certificates = certificates.create(folder / "tls") if spec.needs_certificates else None
        self.nodes = [self._node(number, java) for number in range(spec.brokers)]

    def _node(self, number: int, java: Java) -> Node:
        folder = self.folder / f"broker-{number}"
        settings = properties.broker(self.spec, number, self._ports, folder / "data", self._certificates)
        probe = BrokerProbe(number, {"bootstrap.servers": self._address(number, PLAINTEXT)}, self._running)
        return Node(f"broker {number} of {self.name}", folder, settings, probe, java)

    def _running(self) -> set[int]:
        return {number for number, node in enumerate(self.nodes) if node.running}

    def _address(self, number: int, listener: str) -> str:
        return f"{ports.HOST}:{self._ports[number].listeners[listener]}"

    @property
    def bootstrap_servers(self) -> str:
        """Of the PLAINTEXT listener."""
        return self.listeners[PLAINTEXT]

    @property
    def listeners(self) -> Mapping[str, str]:
        """Bootstrap servers by the listener's name."""
        return {name: self.client_settings(name)["bootstrap.servers"] for name in self.spec.listeners}

    def client_settings(self, listener: str = PLAINTEXT, user: str | None = None) -> dict[str, str]:
        """Kafka client properties, as a Java client or MirrorMaker 2 would be given them."""
        return properties.client(self.spec, listener, self._ports, self._certificates, user)

    def await_ready(self, timeout_s: float = _START_TIMEOUT_S) -> None:
        for node in self.nodes:
            node.await_ready(timeout_s)

    def create_users(self) -> None:
        """Makes the SCRAM users of a cluster that is ready, and waits until every broker lets them in."""
        if not self.spec.scram or self._certificates is None:
            return
        users.create_scram_users(self.bootstrap_servers, self.spec.scram)
        # All came in one change, so a broker that knows one of them knows all.
        user, password = next(iter(self.spec.scram.items()))
        login = users.login_settings(user, password, self._certificates.authority)
        for number, node in enumerate(self.nodes):
            settings = {"bootstrap.servers": self._address(number, SASL_SSL), **login}
            probe = BrokerProbe(number, settings, self._running)
            processes.await_ready(node.process, probe.answers, _START_TIMEOUT_S)

    def kill_broker(self, number: int) -> None:
        """SIGKILL: nothing is flushed and nobody is told."""
        self.nodes[number].kill()

    def stop_broker(self, number: int) -> None:
        """Asks the broker to hand over its partitions and end; kills it where it takes too long."""
        processes.stop([self.nodes[number].process], _STOP_GRACE_S)

    def restart_broker(self, number: int) -> None:
        """Starts a stopped or killed broker with its old ports and data, and waits until all answer again."""
        self.nodes[number].start()
        for node in self.nodes:
            if node.running:
                node.await_ready(_START_TIMEOUT_S)

    def pause_broker(self, number: int) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
        self.nodes[number].pause()

    def resume_broker(self, number: int) -> None:
        self.nodes[number].resume()

    def stop(self) -> None:
        _stop([self])


class KafkaClusters(Mapping[str, KafkaCluster]):
    """The started clusters by name; leaving the `with` stops them."""

    def __init__(self, clusters: Sequence[KafkaCluster], report: Report) -> None:
        self._clusters = {cluster.name: cluster for cluster in clusters}
        self._report = report

    def __getitem__(self, name: str) -> KafkaCluster:
        return self._clusters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._clusters)

    def __len__(self) -> int:
        return len(self._clusters)

    def __enter__(self) -> KafkaClusters:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        running = [cluster for cluster in self.values() if any(node.running for node in cluster.nodes)]
        _stop(running)
        for cluster in running:
            self._report(f"kafka {cluster.name}: stopped")


def start(
    specs: Sequence[KafkaSpec],
    folder: Path,
    report: Report = print,
    jars: Path | None = None,
    classes: tuple[str, ...] | None = None,
) -> KafkaClusters:
    """Starts all clusters, each in a folder of its name below `folder`, and waits until all answer; `classes` are the
    JVM's options about its archive of classes, by default to use the one that is there."""
    preconditions.unique((spec.name for spec in specs), "Cluster name")
    ports.require_free([port for spec in specs for port in spec.ports or ()])
    class_path = kafka_jars.class_path(jars)
    java = preconditions.java()
    classes = kafka_jars.archived_classes(jars) if classes is None else classes
    preconditions.free_space(folder, _NEEDED_BYTES, "Kafka")
    clusters = [
        KafkaCluster(spec, folder / spec.name, Java(java, class_path, spec.heap_mb, spec.quick_start, classes))
        for spec in specs
    ]
    started = KafkaClusters(clusters, report)
    try:
        _format(clusters, report)
        for cluster in clusters:
            report(f"kafka {cluster.name}: starting {_brokers(cluster)}")
            for node in cluster.nodes:
                node.start()
        for cluster in clusters:
            cluster.await_ready()
            cluster.create_users()
            report(f"kafka {cluster.name}: ready at {cluster.bootstrap_servers}")
    except BaseException:
        started.stop()
        raise
    return started


def _choose_ports(spec: KafkaSpec) -> tuple[properties.NodePorts, ...]:
    nodes = []
    for number in range(spec.brokers):
        controller, *free = ports.free_ports(1 + len(spec.listeners))
        listeners = dict(zip(spec.listeners, free, strict=True))
        if spec.ports is not None:
            listeners[PLAINTEXT] = spec.ports[number]
        nodes.append(properties.NodePorts(controller, listeners))
    return tuple(nodes)


def _format(clusters: Sequence[KafkaCluster], report: Report) -> None:
    running = []
    try:
        for cluster in clusters:
            report(f"kafka {cluster.name}: formatting {cluster.folder}")
            cluster_id = _cluster_id(cluster.folder)
            running += [node.format(cluster_id) for node in cluster.nodes]
        for process in running:
            if not process.wait(_START_TIMEOUT_S) or process.exit_code != 0:
                raise StartError(f"{process.name} failed; the last lines of {process.log}:\n{process.last_lines()}")
    finally:
        processes.stop(running, _STOP_GRACE_S)


def _cluster_id(folder: Path) -> str:
    """The id that the folder was formatted with, or a new one: 16 random bytes, as Kafka writes them."""
    kept = folder / "cluster.id"
    if not kept.exists():
        kept.write_text(base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="))
    return kept.read_text()


def _stop(clusters: Sequence[KafkaCluster]) -> None:
    nodes = [node for cluster in clusters for node in cluster.nodes if node.running]
    processes.stop([node.process for node in nodes], _STOP_GRACE_S)


def _brokers(cluster: KafkaCluster) -> str:
    return "1 broker" if cluster.spec.brokers == 1 else f"{cluster.spec.brokers} brokers"
