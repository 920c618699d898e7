"""Measures proving against copying, and against what people do by hand: two consumers, record by record.

    make bench-reconcile                 each case with some seconds of copying
    make bench-reconcile BENCH=quick     a fifth of the data

For each case a topic is filled on one local cluster and copied to another; then the twin is proven equal, by digest and
record by record, and compared with two plain confluent-kafka consumers, in one run on the same machine. Copying and
proving run in two processes side by side without Spark, so that neither's start-up counts; the plain comparison is one
process with a consumer for either side. MB are 1,000,000 bytes of record batches as stored on the source; proving
reads both sides, and its rate is that of the source's bytes that were proven.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.support import loads, table
from benchmarks.support.loads import Load
from confluent_kafka import Consumer, Message, TopicPartition

from local import kafka
from local.kafka import KafkaSpec
from local.processes import termination_as_exit
from twinlog.cluster.access import flow_access
from twinlog.cluster.copy_order import carry_out
from twinlog.cluster.prover import prove
from twinlog.ledger.store import Ledger
from twinlog.model.flow import Flow
from twinlog.model.topology import Cluster, Topology
from twinlog.operations.mirror import Mirror
from twinlog.operations.reconcile import Reconciling, Scope
from twinlog.operations.reconcile_result import Reconciliation
from twinlog.operations.run_scope import Ends

HEADER = ("case", "copied MB", "copying MB/s", "proving MB/s", "ratio", "record by record MB/s", "two consumers MB/s",
          "ratio")  # fmt: skip
PROCESSES = 2


@dataclass(frozen=True, slots=True)
class Measured:
    """One case, in seconds."""

    load: Load
    bytes: int
    copying_s: float
    proving_s: float
    deep_s: float
    plain_s: float

    def row(self) -> list[str]:
        copying, proving, deep, plain = (
            self.bytes / 1e6 / seconds for seconds in (self.copying_s, self.proving_s, self.deep_s, self.plain_s)
        )
        load = self.load
        return [
            f"{load.record_bytes:,} B, {load.codec}, {load.partitions} partitions",
            f"{self.bytes / 1e6:,.0f}",
            f"{copying:.1f}",
            f"{proving:.1f}",
            table.times(proving, copying),
            f"{deep:.1f}",
            f"{plain:.1f}",
            table.times(proving, plain),
        ]


class Bench:
    """Two clusters and some processes."""

    def __init__(self, clusters: loads.Clusters, pool: ProcessPoolExecutor, folder: Path) -> None:
        self._clusters = clusters
        self._pool = pool
        self._folder = folder
        self._flows = 0

    def measure(self, load: Load) -> Measured:
        loads.fill(self._clusters.source, load)
        topology, flow, ends, ledger = self._flow(load.topic)
        copied = Mirror(topology, flow, ends, ledger).run(self._at_once(carry_out), tasks=PROCESSES)
        if copied.recorded.records != load.records:
            raise RuntimeError(f"{load.topic}: {copied.recorded.records} of {load.records} records were copied")
        reconciling = Reconciling(topology, flow, ends, ledger)
        proven = self._proven(reconciling, Scope(full=True), load)
        deep = self._proven(reconciling, Scope(full=True, deep=True), load)
        if proven.opened:
            raise RuntimeError(f"{load.topic}: {proven.opened} records were opened, and digests were to be measured")
        plain_s = self._plain(load, f"{flow.source}.{load.topic}")
        loads.delete_topics(self._clusters.source, load.topic)
        loads.delete_topics(self._clusters.target, load.topic)
        return Measured(load, copied.recorded.bytes, copied.seconds, proven.seconds, deep.seconds, plain_s)

    def _proven(self, reconciling: Reconciling, scope: Scope, load: Load) -> Reconciliation:
        result = reconciling.run(scope, self._at_once(prove), tasks=PROCESSES)
        wrong = [one for one in result.differences if one.source_offset is not None]
        if wrong or result.records != load.records:
            raise RuntimeError(f"{load.topic}: {result.records} records were proven, and {wrong[:3]} differ")
        return result

    def _plain(self, load: Load, target: str) -> float:
        """As long as it takes to read both sides with the usual consumer and compare them."""
        began = time.monotonic()
        self._pool.submit(compare_plainly, self._clusters, load, target).result()
        return time.monotonic() - began

    def _flow(self, topic: str) -> tuple[Topology, Flow, Ends, Ledger]:
        self._flows += 1
        source, target = f"s{self._flows}", f"t{self._flows}"
        quiet = {"emit_heartbeats_enabled": False, "heartbeats_replication_enabled": False}
        quiet |= {"emit_checkpoints_enabled": False, "emit_offset_syncs_enabled": False, "canary_enabled": False}
        flow = Flow(source, target, topics=(topic,), replication_factor=1, journal_topic_replication_factor=1, **quiet)
        servers = {source: self._clusters.source, target: self._clusters.target}
        topology = Topology(
            clusters={alias: Cluster(alias, address) for alias, address in servers.items()},
            flows={flow.name: flow},
            ledger=str(self._folder / "ledger"),
        )
        ends = Ends(
            flow_access(topology, flow, "source"),
            flow_access(topology, flow, "target"),
            flow_access(topology, flow, "source", "consumer"),
            flow_access(topology, flow, "target", "producer"),
        )
        return topology, flow, ends, Ledger(topology.ledger, source, target)

    def _at_once(self, work: Callable[[Any], Any]) -> Callable[[list[Any]], list[Any]]:
        def execute(orders: list[Any]) -> list[Any]:
            answers = list(self._pool.map(work, orders))
            return [one for some in answers for one in some] if work is carry_out else answers

        return execute


def compare_plainly(clusters: loads.Clusters, load: Load, target: str) -> None:
    """The load's records on both sides, compared one by one."""
    source, partitions = load.topic, range(load.partitions)
    here, there = _consumer(clusters.source, source, partitions), _consumer(clusters.target, target, partitions)
    waiting: dict[int, list[list[Message]]] = {number: [[], []] for number in partitions}
    left = load.records
    try:
        while left > 0:
            for side, consumer in enumerate((here, there)):
                for message in consumer.consume(10_000, timeout=0.1):
                    if message.error() is not None:
                        raise RuntimeError(str(message.error()))
                    waiting[message.partition()][side].append(message)
            for sides in waiting.values():
                count = min(map(len, sides))
                for one, other in zip(sides[0][:count], sides[1][:count], strict=True):
                    if (one.key(), one.value(), one.headers(), one.timestamp()) != (
                        other.key(),
                        other.value(),
                        other.headers(),
                        other.timestamp(),
                    ):
                        raise RuntimeError(f"{source} and {target} differ")
                del sides[0][:count], sides[1][:count]
                left -= count
    finally:
        here.close()
        there.close()


def _consumer(servers: str, topic: str, partitions: Sequence[int]) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "plain",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "queued.max.messages.kbytes": 128 << 10,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    return consumer


def measured(cases: Sequence[Load], folder: Path) -> Iterator[Measured]:
    options = {"log.segment.bytes": str(1 << 30), "num.io.threads": "4"}
    specs = [KafkaSpec(name, heap_mb=1024, quick_start=False, properties=options) for name in ("source", "target")]
    with (
        kafka.start(specs, folder / "kafka") as clusters,
        ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool,
    ):
        servers = loads.Clusters(clusters["source"].bootstrap_servers, clusters["target"].bootstrap_servers)
        bench = Bench(servers, pool, folder)
        # Once for nothing: files come into the cache, brokers compile, processes import.
        bench.measure(Load(1_000, "lz4", 8, 300_000))
        for load in cases:
            yield bench.measure(load)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks/reconcile.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a fifth of the data")
    options = parser.parse_args(arguments)
    raw = 240_000_000 if options.quick else 1_200_000_000
    cases = [
        Load(size, codec, partitions, raw // size)
        for size, codec, partitions in ((1_000, "none", 8), (1_000, "lz4", 8), (1_000, "zstd", 8), (100, "lz4", 8))
    ]
    print(f"{platform.node()}: {os.cpu_count()} cores, {platform.platform()}, load {os.getloadavg()[0]:.1f}")
    rows = []
    with termination_as_exit(), tempfile.TemporaryDirectory(prefix="twinlog-bench.") as folder:
        for one in measured(cases, Path(folder)):
            rows.append(one.row())
            print(" | ".join(one.row()), flush=True)
    print("\n".join(["", *table.lines(HEADER, rows)]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
