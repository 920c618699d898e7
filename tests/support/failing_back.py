"""A flow that has failed over and back again, as tests drive it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from local.kafka import KafkaClusters
from support.mirroring import QUIET, Twins, producer, twins
from support.reading import read_with_offsets
from support.waiting import await_condition
from twinlog.cluster.copy_order import carry_out_here
from twinlog.intake.extensions import naming_of
from twinlog.ledger.store import Ledger
from twinlog.model.failback import Mode, Stranded
from twinlog.model.flow import Flow
from twinlog.model.flow_state import State
from twinlog.operations.directions import with_way_home
from twinlog.operations.failback import Failback
from twinlog.operations.failback_plan import FailbackPlan, FailbackRequest, FailbackResult
from twinlog.operations.flow_reach import FlowReach

QUIET_S = 0.1


def failback_of(flow: Twins) -> Failback:
    topology, home = with_way_home(flow.topology, flow.flow)
    return Failback(
        flow.topology,
        flow.flow,
        flow.ends(),
        FlowReach(topology, home).ends(),
        flow.ledger,
        quiet_s=QUIET_S,
        seam_within_s=20.0,
    )


def plan_of(flow: Twins, mode: Mode = Mode.RESUME, stranded: Stranded = Stranded.LEAVE, **more: bool) -> FailbackPlan:
    return failback_of(flow).plan(FailbackRequest(mode, stranded, **more))


def fail_back(
    flow: Twins, mode: Mode = Mode.RESUME, stranded: Stranded = Stranded.LEAVE, **more: bool
) -> FailbackResult:
    """The whole of it, which must succeed."""
    plan = plan_of(flow, mode, stranded, **more)
    assert plan.refused == ()
    result = failback_of(flow).carry_out(plan, carry_out_here, tasks=2)
    assert result.complete, result.failure
    assert result.figures["verdict"] == "equal", result.warnings
    return result


def fail_over(flow: Twins) -> None:
    """Only the mark: what else a failover does has tests of its own."""
    flow.change_record(lambda record: record.moved_to(State.FAILED_OVER, flow.flow.name))


def write(servers: str, topic: str, values: Iterable[str], partition: int = 0) -> None:
    writer = producer(servers)
    for value in values:
        writer.produce(topic, value.encode(), key=value.encode(), partition=partition)
        writer.poll(0)
    assert writer.flush(30) == 0


def values_of(servers: str, topic: str, partition: int = 0) -> list[str]:
    """What a reader of the partition sees, in order."""
    return [(seen.value or b"").decode() for seen in read_with_offsets(servers, topic)[partition].values()]


def commit(servers: str, group: str, topic: str, offset: int, partition: int = 0) -> None:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition(topic, partition, offset)], asynchronous=False)
    consumer.close()


def committed(servers: str, group: str, topic: str, partition: int = 0) -> int:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False})
    try:
        (found,) = consumer.committed([TopicPartition(topic, partition)], timeout=10)
        return int(found.offset)
    finally:
        consumer.close()


def numbered(word: str, count: int, first: int = 0) -> list[str]:
    return [f"{word}{number}" for number in range(first, first + count)]


def new_name(word: str = "orders") -> str:
    return f"{word}-{uuid.uuid4().hex[:8]}"


def both_ways(kafka_pair: KafkaClusters, folder: Path, topic: str, naming: str) -> tuple[Twins, Twins]:
    """The flow and the topology's own flow in the other direction."""
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    there = twins(nyc, lon, folder, (topic,), naming=naming)
    flow = there.flow
    settings = {"topics": (topic,), "replication_factor": 1, "journal_topic_replication_factor": 1, "lanes": 3}
    opposite = Flow(flow.target, flow.source, naming=naming, **settings, **QUIET)
    topology = replace(there.topology, flows={flow.name: flow, opposite.name: opposite})
    ledger = Ledger(topology.ledger, opposite.source, opposite.target)
    return replace(there, topology=topology), Twins(topology, opposite, ledger, lon, nyc)


def delete_topic(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([topic])[topic].result(30)
    await_condition(lambda: topic not in admin.list_topics(timeout=10).topics, f"{topic} to be gone")


def named(naming: str) -> dict[str, str]:
    """The settings of a flow that names topics so."""
    return {"naming": naming, **({"naming_format": "${topic}.replica"} if naming == "custom" else {})}


def twin_of(flow: Twins, topic: str) -> str:
    return naming_of(flow.flow).target_name(topic)
