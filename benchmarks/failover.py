"""Measures a failover of many groups: the time from its trigger until every group can go on, on the target.

    python -m benchmarks.failover [--quick] [GROUPS PARTITIONS]

Every group has committed on every partition: 1,000 groups on 1,000 partitions are a million positions, mirrored between
two clusters of one broker each. What the groups had read is known by the checkpoints on the target; then the source is
killed, and the clock starts: a plan is made, and carried out, as `twinlog failover --yes` does. All offsets are
committed then, one request a group, and read back. CPU is Twinlog's own, the rest is the broker's. Aim: under a minute.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from benchmarks.support import table
from confluent_kafka import Producer
from kafka.protocol.metadata import CoordinatorType

from local import kafka
from local.kafka import KafkaClusters, KafkaSpec
from local.processes import termination_as_exit
from twinlog.cluster.access import flow_access
from twinlog.cluster.copy_order import carry_out_here
from twinlog.cluster.group_offsets import commit_offsets
from twinlog.cluster.topic_admin import TopicToCreate, create_topics
from twinlog.cluster.visibility import topics_visible
from twinlog.ledger.store import Ledger
from twinlog.model.checkpoints import Commit
from twinlog.model.flow import Flow
from twinlog.model.offsets import TopicPartition
from twinlog.model.takeover import Request
from twinlog.model.takeover_progress import Step
from twinlog.model.topology import Cluster, Topology
from twinlog.operations.failover import Failover
from twinlog.operations.mirror import Ends, Mirror

GROUPS, PARTITIONS = 1_000, 1_000
QUICK = 100, 200
A_TOPIC = 20
RECORDS = 5
HEADER = ("step", "seconds", "CPU s")
T = TypeVar("T")


class Estate:
    """A flow with groups between two clusters."""

    def __init__(self, clusters: KafkaClusters, folder: Path) -> None:
        flow = Flow(
            "nyc",
            "lon",
            topics=("topic-.*",),
            groups=("group-.*",),
            lanes=2,
            replication_factor=1,
            journal_topic_replication_factor=1,
            checkpoints_topic_replication_factor=1,
            emit_heartbeats_enabled=False,
            emit_offset_syncs_enabled=False,
            canary_enabled=False,
        )
        known = {name: Cluster(name, cluster.bootstrap_servers) for name, cluster in clusters.items()}
        self.topology = Topology(known, {flow.name: flow}, ledger=str(folder / "ledger"))
        self.flow = flow
        self.ledger = Ledger(self.topology.ledger, "nyc", "lon")
        self.source, self.target = (flow_access(self.topology, flow, side) for side in ("source", "target"))

    def fill(self, groups: int, partitions: int) -> None:
        """The topics with some records, and each group somewhere on every partition."""
        names = [f"topic-{number}" for number in range(partitions // A_TOPIC)]
        places = [TopicPartition(name, number) for name in names for number in range(A_TOPIC)]
        with self.source.raw() as client:
            # The first question ever makes the cluster create its own topic for offsets.
            client.run(client.coordinator(CoordinatorType.GROUP, "group-0"))
            client.run(create_topics(client, [TopicToCreate(name, A_TOPIC, 1) for name in names]))
            client.run(topics_visible(client, dict.fromkeys(names, A_TOPIC)))
            writer = Producer({"bootstrap.servers": self.source.bootstrap_servers, "linger.ms": 50})
            for place in places:
                for record in range(RECORDS):
                    writer.produce(place.topic, str(record), partition=place.partition)
                writer.poll(0)
            if writer.flush(120):
                raise SystemExit("the source did not take the records in time")
            for group in range(groups):
                commits = {place: Commit((group + place.partition) % (RECORDS + 1)) for place in places}
                client.run(commit_offsets([client], {f"group-{group}": commits}))

    def mirror(self) -> None:
        ends = Ends(
            self.source,
            self.target,
            flow_access(self.topology, self.flow, "source", "consumer"),
            flow_access(self.topology, self.flow, "target", "producer"),
        )
        done = Mirror(self.topology, self.flow, ends, self.ledger).run(carry_out_here, tasks=1)
        if done.failures:
            raise SystemExit("; ".join(done.failures))
        print("\n".join(done.notes))

    def failing_over(self) -> Failover:
        return Failover(self.topology, self.flow, self.source, self.target, self.ledger)


def timed(rows: list[list[str]], name: str, work: Callable[[], T]) -> T:
    began, began_cpu = time.perf_counter(), time.process_time()
    done = work()
    rows.append([name, f"{time.perf_counter() - began:.1f}", f"{time.process_time() - began_cpu:.1f}"])
    return done


def measure(estate: Estate, clusters: KafkaClusters, groups: int, partitions: int) -> list[list[str]]:
    before: list[list[str]] = []
    timed(before, "filling the source", lambda: estate.fill(groups, partitions))
    timed(before, "the mirror's run, with its checkpoints", estate.mirror)
    print("\n".join(table.lines(HEADER, before)))
    print(f"\nThe source is killed now. Load {os.getloadavg()[0]:.1f}\n")
    clusters["nyc"].kill_broker(0)
    rows: list[list[str]] = []
    began, began_cpu = time.perf_counter(), time.process_time()
    failover = estate.failing_over()
    plan = timed(rows, "plan, kept as JSON and CSV", lambda: failover.plan(Request()))
    result = failover.apply(plan)
    rows += [[f"{step.step.name.lower()}: {step.said}", f"{step.seconds:.1f}", ""] for step in result.steps]
    seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    done = (result.moved.groups, result.moved.committed, len(result.left_out), result.failures)
    if done != (groups, groups * partitions, 0, ()) or [step.step for step in result.steps] != list(Step):
        raise SystemExit(f"not every group was moved: {done}")
    rows.append(["from the trigger to every group ready", f"{seconds:.1f}", f"{cpu:.1f}"])
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK[0]} groups on {QUICK[1]} partitions")
    parser.add_argument("sizes", metavar="N", type=int, nargs="*", help="groups and partitions")
    asked = parser.parse_args(arguments)
    groups, partitions = asked.sizes or (QUICK if asked.quick else (GROUPS, PARTITIONS))
    specs = [KafkaSpec(name, quick_start=False, heap_mb=1024) for name in ("nyc", "lon")]
    with termination_as_exit(), tempfile.TemporaryDirectory() as folder, kafka.start(specs, Path(folder)) as clusters:
        estate = Estate(clusters, Path(folder) / "twinlog")
        print(f"{groups:,} groups on {partitions:,} partitions, {groups * partitions:,} positions")
        print("\n".join(table.lines(HEADER, measure(estate, clusters, groups, partitions))))
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak {peak_mb:,.0f} MB")


if __name__ == "__main__":
    main()
