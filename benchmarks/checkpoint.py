"""Measures a pass over many groups between real clusters: the first, which writes all, and one with nothing to write.

    python -m benchmarks.checkpoint [--quick] [GROUPS]

Every group has committed on ten partitions, 50,000 positions for 5,000 groups, somewhere in what was mirrored in
several runs; the topics have 1,000 partitions together, which is what two brokers on one machine bear. Seconds are
those of the whole pass with its readiness table; CPU is Twinlog's share of them, the rest is the brokers'. Aim: 5,000
groups in under a minute.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.support import table
from confluent_kafka import Producer
from kafka.protocol.metadata import CoordinatorType

from local import kafka
from local.kafka import KafkaSpec
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
from twinlog.model.topology import Cluster, Topology
from twinlog.operations.checkpoint import Checkpointing
from twinlog.operations.mirror import Ends, Mirror

GROUPS, QUICK_GROUPS = 5_000, 500
TOPICS, PARTITIONS = 50, 20
NAMES = [f"topic-{number}" for number in range(TOPICS)]
PLACES = [TopicPartition(name, number) for name in NAMES for number in range(PARTITIONS)]
A_GROUP = 10
RUNS, RECORDS = 3, 10
"""Runs of the mirror before, and records of a partition that each brings."""
HEADER = ("pass", "seconds", "CPU s", "groups ready", "records", "offsets committed")


def topology_of(source: str, target: str, folder: Path) -> Topology:
    flow = Flow(
        "nyc",
        "lon",
        topics=("topic-.*",),
        groups=("group-.*",),
        lanes=2,
        replication_factor=1,
        emit_heartbeats_enabled=False,
        emit_offset_syncs_enabled=False,
        emit_checkpoints_enabled=False,
    )
    clusters = {"nyc": Cluster("nyc", source), "lon": Cluster("lon", target)}
    return Topology(clusters, {flow.name: flow}, ledger=str(folder / "ledger"))


def fill(topology: Topology, groups: int) -> None:
    """The topics, and the positions of the groups on them, each somewhere in what will have been mirrored."""
    commits = {
        f"group-{number}": {
            PLACES[(number * A_GROUP + step) % len(PLACES)]: Commit((number + step) % (RUNS * RECORDS))
            for step in range(A_GROUP)
        }
        for number in range(groups)
    }
    with flow_access(topology, topology.flow("nyc->lon"), "source").raw() as client:
        # The first question ever makes the cluster create its own topic for offsets, which a busy one takes long for.
        client.run(client.coordinator(CoordinatorType.GROUP, "group-0"))
        client.run(create_topics(client, [TopicToCreate(name, PARTITIONS, 1) for name in NAMES]))
        client.run(topics_visible(client, dict.fromkeys(NAMES, PARTITIONS)))
        client.run(commit_offsets([client], commits))


def produce(servers: str) -> None:
    """What one run of the mirror will bring."""
    # A request a partition: more of them under way than a busy broker answers in a minute would be given up.
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 50, "max.in.flight.requests.per.connection": 20})
    for place in PLACES:
        for number in range(RECORDS):
            producer.produce(place.topic, f"record {number}", partition=place.partition)
    if producer.flush(120):
        raise SystemExit("the records could not be produced within two minutes")


def measure(topology: Topology) -> list[list[str]]:
    flow = topology.flow("nyc->lon")
    ledger = Ledger(topology.ledger_for(flow), flow.source, flow.target)
    source, target = (flow_access(topology, flow, side) for side in ("source", "target"))
    reading = flow_access(topology, flow, "source", "consumer")
    writing = flow_access(topology, flow, "target", "producer")
    for _ in range(RUNS):
        produce(source.bootstrap_servers)
        Mirror(topology, flow, Ends(source, target, reading, writing), ledger).run(carry_out_here, tasks=1)
    syncing = replace(flow, sync_group_offsets_enabled=True)
    rows = []
    for name in ("the first", "nothing to write"):
        began, began_cpu = time.perf_counter(), time.process_time()
        result = Checkpointing(topology, syncing, source, target, ledger).run()
        seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
        if result.standings.left_out:
            raise SystemExit(f"groups that are not translated exactly: {result.standings.left_out[:3]}")
        counts = (result.standings.ready, result.records, result.commits)
        rows.append([name, f"{seconds:.1f}", f"{cpu:.1f}", *(f"{count:,}" for count in counts)])
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_GROUPS} groups")
    parser.add_argument("groups", metavar="GROUPS", type=int, nargs="?")
    asked = parser.parse_args(arguments)
    groups = asked.groups or (QUICK_GROUPS if asked.quick else GROUPS)
    specs = [KafkaSpec(name, quick_start=False, heap_mb=1024) for name in ("nyc", "lon")]
    with termination_as_exit(), tempfile.TemporaryDirectory() as folder, kafka.start(specs, Path(folder)) as clusters:
        topology = topology_of(
            clusters["nyc"].bootstrap_servers, clusters["lon"].bootstrap_servers, Path(folder) / "twinlog"
        )
        fill(topology, groups)
        print(f"{groups:,} groups, {groups * A_GROUP:,} positions, {TOPICS * PARTITIONS:,} partitions")
        print("\n".join(table.lines(HEADER, measure(topology))))


if __name__ == "__main__":
    main()
