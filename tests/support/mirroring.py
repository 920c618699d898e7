"""A flow between two real clusters with names of its own, run without Spark, and what readers see on both sides."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from twinlog.cluster.access import flow_access
from twinlog.cluster.copy_order import Executor, carry_out_here
from twinlog.ledger.store import Ledger
from twinlog.model.flow import Flow
from twinlog.model.topology import Cluster, Topology
from twinlog.operations.mirror import NO_LIMITS, Ends, Limits, Mirror
from twinlog.operations.mirror_result import MirrorResult


class Seen(NamedTuple):
    """A record as a plain consumer sees it, less its offset."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: tuple[int, int]


@dataclass
class Twins:
    """One flow. Aliases are new for every test, so that journals, states and positions are too."""

    topology: Topology
    flow: Flow
    ledger: Ledger
    source_servers: str
    target_servers: str

    def ends(self) -> Ends:
        return Ends(
            source=flow_access(self.topology, self.flow, "source"),
            target=flow_access(self.topology, self.flow, "target"),
            reading=flow_access(self.topology, self.flow, "source", "consumer"),
            writing=flow_access(self.topology, self.flow, "target", "producer"),
        )

    def mirror(
        self,
        execute: Executor = carry_out_here,
        *,
        tasks: int = 2,
        limits: Limits = NO_LIMITS,
        run: str | None = None,
    ) -> MirrorResult:
        mirror = Mirror(self.topology, self.flow, self.ends(), self.ledger)
        return mirror.run(execute, tasks=tasks, limits=limits, run=run)

    def with_settings(self, **settings: Any) -> Twins:
        flow = replace(self.flow, **settings)
        return replace(self, flow=flow, topology=replace(self.topology, flows={flow.name: flow}))

    def twin(self, topic: str) -> str:
        return f"{self.flow.source}.{topic}"

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        create_topic(self.source_servers, topic, partitions, settings)

    def read_source(self, topic: str) -> dict[int, list[Seen]]:
        return read_committed(self.source_servers, topic)

    def read_target(self, topic: str) -> dict[int, list[Seen]]:
        return read_committed(self.target_servers, self.twin(topic))


def twins(source_servers: str, target_servers: str, folder: Path, topics: tuple[str, ...], **settings: Any) -> Twins:
    """A flow of new aliases between the two clusters, for topics of these names."""
    mark = uuid.uuid4().hex[:6]
    source, target = f"s{mark}", f"t{mark}"
    flow = Flow(
        source,
        target,
        **{"topics": topics, "replication_factor": 1, "journal_topic_replication_factor": 1, "lanes": 2, **settings},
    )
    topology = Topology(
        clusters={source: Cluster(source, source_servers), target: Cluster(target, target_servers)},
        flows={flow.name: flow},
        ledger=str(folder / "ledger"),
    )
    return Twins(topology, flow, Ledger(topology.ledger, source, target), source_servers, target_servers)


def create_topic(servers: str, topic: str, partitions: int, settings: Mapping[str, str], replicas: int = 1) -> None:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_topics([NewTopic(topic, partitions, replicas, config=named)]).values():
        future.result()


def producer(servers: str, **settings: Any) -> Producer:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return Producer({"bootstrap.servers": servers, "linger.ms": 5, **named})


def read_committed(servers: str, topic: str) -> dict[int, list[Seen]]:
    """Every committed record of a topic, by partition, in order."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"reader-{uuid.uuid4().hex}",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        numbers = list(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, number, 0) for number in numbers])
        seen: dict[int, list[Seen]] = {number: [] for number in numbers}
        waiting = set(numbers)
        while waiting:
            for message in consumer.consume(5_000, timeout=0.1):
                if message.error():
                    waiting.discard(message.partition())
                    continue
                headers = tuple((key, value) for key, value in message.headers() or ())
                seen[message.partition()].append(Seen(message.key(), message.value(), headers, message.timestamp()))
        return seen
    finally:
        consumer.close()
