"""A flow between two real clusters with names of its own, run without Spark, and what readers see on both sides."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from support.reading import Seen, read_committed
from twinlog.cluster.access import flow_access
from twinlog.cluster.copy_order import Executor, carry_out_here
from twinlog.ledger.store import Ledger
from twinlog.model.flow import Flow
from twinlog.model.flow_state import FlowRecord
from twinlog.model.topology import Cluster, Topology
from twinlog.operations.lease import flow_store
from twinlog.operations.mirror import NO_LIMITS, Ends, Limits, Mirror
from twinlog.operations.mirror_result import MirrorResult
from twinlog.operations.run_plan import Looking, RunPlan

QUIET = {
    "emit_heartbeats_enabled": False,
    "heartbeats_replication_enabled": False,
    "emit_offset_syncs_enabled": False,
    "emit_checkpoints_enabled": False,
}
"""No signs of life: the heartbeats topic would be one for all flows of tests that share a source."""
NO_HEARTBEATS = {"emit.heartbeats.enabled": False, "heartbeats.replication.enabled": False}
"""The same for a topology in a file."""


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
        return self.steps().run(execute, tasks=tasks, limits=limits, run=run)

    def steps(self) -> Mirror:
        """The run's steps, to be taken one by one."""
        return Mirror(self.topology, self.flow, self.ends(), self.ledger)

    def look(self, limits: Limits = NO_LIMITS, run: str = "looking") -> RunPlan:
        return Looking(self.topology, self.flow, self.ends(), self.ledger).look(run, limits)

    def with_settings(self, **settings: Any) -> Twins:
        flow = replace(self.flow, **settings)
        return replace(self, flow=flow, topology=replace(self.topology, flows={flow.name: flow}))

    def record(self) -> FlowRecord:
        """What the target keeps of the flow."""
        with self.ends().target.raw() as target:
            return target.run(flow_store(self.flow, target).read())

    def change_record(self, decide: Callable[[FlowRecord], FlowRecord]) -> None:
        """Change it as the command line or the page would."""
        with self.ends().target.raw() as target:
            target.run(flow_store(self.flow, target).change(decide))

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
        **{
            "topics": topics,
            "replication_factor": 1,
            "journal_topic_replication_factor": 1,
            "lanes": 2,
            **QUIET,
            **settings,
        },
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
