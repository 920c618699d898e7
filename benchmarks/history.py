"""Measures whether a run costs more the longer a flow has been running: an idle run, and one of 10 MB.

    python -m benchmarks.history [RUNS ...]         1, 100 and 1,000 earlier runs unless told otherwise

The earlier runs are made up, but what they leave behind is real: their entries in the journal, and one ledger file
each, as if nobody ever merged them. Runs are those of `twinlog mirror` without Spark, which takes the same time at any
age. Aim: the same seconds in every row.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from benchmarks.support import loads, table
from benchmarks.support.loads import Load
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from local import kafka
from local.kafka import KafkaSpec
from local.processes import termination_as_exit
from twinlog.cluster.access import flow_access
from twinlog.cluster.copy_order import carry_out_here
from twinlog.ledger.chain import Mark
from twinlog.ledger.columns import RawEntry, to_table
from twinlog.ledger.store import Ledger
from twinlog.model.flow import Flow
from twinlog.model.lanes import journal_topic
from twinlog.model.offsets import JournalEntry, PartitionPair, Segment
from twinlog.model.topology import Cluster, Topology
from twinlog.operations.mirror import Ends, Mirror
from twinlog.operations.mirror_result import MirrorResult
from twinlog.wire import journal

PARTITIONS = 64
RUN_RECORDS = 10_000
RECORD_BYTES = 1_000
REPEATS = 3
OLD = PartitionPair("old", UUID(int=1), "source.old", UUID(int=2), 0)
HEADER = ("earlier runs", "journal entries", "ledger files", "idle run s", "10-MB run s")


class Site:
    """A flow between two clusters, and its past."""

    def __init__(self, source: str, target: str, folder: Path) -> None:
        self._source = source
        self._target = target
        self._load = Load(RECORD_BYTES, "lz4", PARTITIONS, RUN_RECORDS)
        self._flow = Flow(
            "source", "target", topics=(self._load.topic,), replication_factor=1, journal_topic_replication_factor=1
        )
        self._topology = Topology(
            clusters={"source": Cluster("source", source), "target": Cluster("target", target)},
            flows={self._flow.name: self._flow},
            ledger=str(folder),
        )
        self._journal = journal_topic("source", "target")
        self.ledger = Ledger(self._topology.ledger, "source", "target")
        self.past_runs = 0
        loads.create_topic(source, self._load.topic, PARTITIONS)

    def mirror(self) -> MirrorResult:
        ends = Ends(
            source=flow_access(self._topology, self._flow, "source"),
            target=flow_access(self._topology, self._flow, "target"),
            reading=flow_access(self._topology, self._flow, "source", "consumer"),
            writing=flow_access(self._topology, self._flow, "target", "producer"),
        )
        return Mirror(self._topology, self._flow, ends, self.ledger).run(carry_out_here, tasks=1)

    def grow(self) -> None:
        loads.write(self._source, self._load)

    def age(self, runs: int) -> None:
        """Add runs to the past: an entry a partition to the journal, and what recording them would have written."""
        topic = AdminClient({"bootstrap.servers": self._target}).list_topics(self._journal).topics[self._journal]
        lanes = len(topic.partitions)
        writer = Producer({"bootstrap.servers": self._target, "linger.ms": 50})
        before = self.ledger.mark()
        for _ in range(runs):
            offsets = dict(before.offsets)
            entries = []
            for number in range(PARTITIONS):
                key, value = self._entry(number)
                lane = number % lanes
                entries.append(RawEntry(key, value, self._journal, lane, offsets.get(lane, 0)))
                offsets[lane] = offsets.get(lane, 0) + 1
                writer.produce(self._journal, value, key, partition=lane)
            writer.poll(0)
            after = Mark(before.journal_id, offsets)
            self.ledger.append(to_table(entries), before, after)
            before = after
            self.past_runs += 1
        writer.flush()

    def _entry(self, partition: int) -> tuple[bytes, bytes]:
        pair = PartitionPair(OLD.source_topic, OLD.source_topic_id, OLD.target_topic, OLD.target_topic_id, partition)
        start = self.past_runs * 100
        segment = Segment(pair, start, start, 100, 0, 0, 10_000, 0, {})
        return journal.encode(JournalEntry(self._flow.name, f"past-{self.past_runs}", 0, segment))


def timed(site: Site, records: int) -> float:
    """The best of a few runs: the rest is what else the machine was doing."""
    found = []
    for _ in range(REPEATS):
        if records:
            site.grow()
        began = time.perf_counter()
        result = site.mirror()
        found.append(time.perf_counter() - began)
        if result.recorded.records != records:
            raise RuntimeError(f"{records} records were to be copied, {result.recorded.records} were")
    return min(found)


def main(arguments: Sequence[str]) -> int:
    ages = [int(text) for text in arguments] or [1, 100, 1_000]
    rows = []
    with termination_as_exit(), tempfile.TemporaryDirectory(prefix="twinlog-bench.") as folder:
        specs = [KafkaSpec(name, heap_mb=512, quick_start=False) for name in ("source", "target")]
        with kafka.start(specs, Path(folder) / "kafka") as clusters:
            servers = [clusters[name].bootstrap_servers for name in ("source", "target")]
            site = Site(servers[0], servers[1], Path(folder) / "ledger")
            # Makes the topics and the ledger's first mark, and is the first of the earlier runs.
            timed(site, RUN_RECORDS)
            site.past_runs = 1
            for age in sorted(ages):
                site.age(age - site.past_runs)
                idle, busy = timed(site, 0), timed(site, RUN_RECORDS)
                entries = sum(site.ledger.mark().offsets.values())
                rows.append((f"{age:,}", f"{entries:,}", f"{len(site.ledger.files()):,}", f"{idle:.2f}", f"{busy:.2f}"))
    print("\n".join(table.lines(HEADER, rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
