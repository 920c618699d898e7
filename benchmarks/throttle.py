"""Measures whether a flow's throttle holds: how much the target's logs grow in a minute, whatever the flow itself says.

    make bench-throttle                 four cases, each a little over a minute of copying; 7 minutes
    make bench-throttle BENCH=quick     the first of them; --case says which others

Topics are filled on one local cluster and copied to another by two processes side by side, as Spark's tasks would. The
twins' logs are measured by the target's broker every second; of each case that is a whole minute, begun when the rate
has been on for five seconds. In the case that is changed on the way the minute begins five seconds after that. The last
case has no throttle but the target a client quota of its own, which the broker makes its clients keep.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from benchmarks.support import loads, table
from benchmarks.support.loads import Load

from local import kafka
from local.kafka import KafkaSpec
from local.processes import termination_as_exit
from twinlog.cluster.access import ClusterAccess, flow_access
from twinlog.cluster.client_limits import change_quotas
from twinlog.cluster.copier import LaneReport
from twinlog.cluster.copy_order import CopyOrder, carry_out
from twinlog.cluster.inventory import log_sizes
from twinlog.ledger.store import Ledger
from twinlog.model.flow import Flow
from twinlog.model.quotas import Quota, QuotaChange
from twinlog.model.topology import Cluster, Topology
from twinlog.operations.mirror import Mirror
from twinlog.operations.mirror_result import MirrorResult
from twinlog.operations.run_scope import Ends
from twinlog.operations.throttling import change_throttle

HEADER = ("case", "MB/s asked for", "MB/s in a minute", "off by", "slowest 10 s", "fastest 10 s")
PROCESSES = 2
SETTLED_S = 5.0
MINUTE_S = 60.0
TEN_S = 10
RECORD_BYTES = 1_000
QUOTA = Quota((("client-id", "quota"),), "producer_byte_rate")


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked of one flow."""

    name: str
    rate: float
    """MB/s."""
    uneven: bool = False
    """Half of all is in one partition of nine."""
    first: float | None = None
    """The rate that it begins with, to be changed after ten seconds."""
    by_quota: bool = False
    """It is the target's quota that limits, not the flow's throttle."""

    @property
    def loads(self) -> tuple[Load, ...]:
        """Topics that last for as long as is measured, and no longer than need be."""
        seconds = MINUTE_S + SETTLED_S + 15
        records = int((self.rate * seconds + (self.first or 0) * TEN_S) * 1e6 / RECORD_BYTES)
        if not self.uneven:
            return (Load(RECORD_BYTES, "none", 8, records),)
        return Load(RECORD_BYTES, "none", 8, records // 2), Load(RECORD_BYTES, "none", 1, records // 2)


CASES = (
    Case("8 partitions alike", 4.0),
    Case("half in one of 9 partitions", 8.0, uneven=True),
    Case("from 12 MB/s to 3 on the way", 3.0, first=12.0),
    Case("no throttle, the target's quota", 6.0, by_quota=True),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """The growth of the target's logs."""

    case: Case
    rates: tuple[float, ...]
    """MB in each second of the minute."""

    def row(self) -> list[str]:
        mean = sum(self.rates) / len(self.rates)
        tens = [sum(self.rates[at : at + TEN_S]) / TEN_S for at in range(len(self.rates) - TEN_S + 1)]
        asked = self.case.rate
        return [
            self.case.name,
            f"{asked:.1f}",
            f"{mean:.2f}",
            f"{100 * (mean - asked) / asked:+.1f} %",
            f"{min(tens):.2f}",
            f"{max(tens):.2f}",
        ]


class Bench:
    """Two clusters and some processes."""

    def __init__(self, clusters: loads.Clusters, pool: ProcessPoolExecutor, folder: Path) -> None:
        self._clusters = clusters
        self._pool = pool
        self._folder = folder
        self._flows = 0

    def measure(self, case: Case) -> Measured:
        for load in case.loads:
            loads.fill(self._clusters.source, load)
        topology, flow, ends, ledger = self._flow(case)
        if case.by_quota:
            with ends.target.raw() as target:
                refused = target.run(change_quotas(target, [QuotaChange(QUOTA, None, case.rate * 1e6)]))
            if refused:
                raise RuntimeError(f"the quota was refused: {refused}")
        mirror = Mirror(topology, flow, ends, ledger)
        with ThreadPoolExecutor(1) as beside:
            running = beside.submit(lambda: mirror.run(self._at_once, tasks=PROCESSES))
            rates = self._watched(case, flow, ends.target, running)
            copied = running.result()
        wanted = sum(load.records for load in case.loads)
        if copied.failures or copied.recorded.records != wanted:
            raise RuntimeError(f"{case.name}: {copied.recorded.records} of {wanted} records, {copied.failures}")
        for load in case.loads:
            loads.delete_topics(self._clusters.source, load.topic)
            loads.delete_topics(self._clusters.target, load.topic)
        return Measured(case, rates)

    def _watched(
        self, case: Case, flow: Flow, access: ClusterAccess, running: Future[MirrorResult]
    ) -> tuple[float, ...]:
        """The rates of a minute, second by second."""
        looks = _looks(flow, access, running)
        began = next(at for at, size in looks if size)
        if case.first is not None:
            next(at for at, _ in looks if at >= began + TEN_S)
            change_throttle(flow, access, case.rate)
            began = time.monotonic()
        first = next((at, size) for at, size in looks if at >= began + SETTLED_S)
        rates, last = list[float](), first
        for at, size in looks:
            rates.append((size - last[1]) / 1e6 / (at - last[0]))
            last = at, size
            if at >= first[0] + MINUTE_S:
                return tuple(rates)
        done = running.result()
        raise RuntimeError(
            f"{case.name}: it ended after {last[0] - began:.0f} s, before a minute was over, with "
            f"{done.recorded.records} records and {done.recorded.bytes / 1e6:.0f} MB; {done.failures or done.lanes}"
        )

    def _flow(self, case: Case) -> tuple[Topology, Flow, Ends, Ledger]:
        self._flows += 1
        source, target = f"s{self._flows}", f"t{self._flows}"
        quiet = {"emit_heartbeats_enabled": False, "heartbeats_replication_enabled": False}
        quiet |= {"emit_checkpoints_enabled": False, "emit_offset_syncs_enabled": False, "canary_enabled": False}
        flow = Flow(
            source,
            target,
            topics=tuple(load.topic for load in case.loads),
            replication_factor=1,
            journal_topic_replication_factor=1,
            throttle=None if case.by_quota else case.first or case.rate,
            **quiet,
        )
        if case.by_quota:
            flow = replace(flow, overrides={"producer.client.id": "quota"})
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

    def _at_once(self, orders: list[CopyOrder]) -> list[LaneReport]:
        return [report for reports in self._pool.map(carry_out, orders) for report in reports]


def _looks(flow: Flow, access: ClusterAccess, running: Future[MirrorResult]) -> Iterator[tuple[float, int]]:
    """Every second, when it was and how many bytes the twins' logs hold; ends with the run."""
    wanted = f"{flow.source}."
    with access.raw() as target:
        while not running.done():
            sizes = target.run(log_sizes(target, target.run(target.metadata())))
            at = time.monotonic()
            yield at, sum(size for partition, size in sizes.items() if partition.topic.startswith(wanted))
            target.run(target.pause(max(0.0, at + 1.0 - time.monotonic())))


def measured(cases: Sequence[Case], folder: Path) -> Iterator[Measured]:
    specs = [KafkaSpec(name, heap_mb=768, quick_start=False) for name in ("source", "target")]
    with (
        kafka.start(specs, folder / "kafka") as clusters,
        ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool,
    ):
        servers = loads.Clusters(clusters["source"].bootstrap_servers, clusters["target"].bootstrap_servers)
        bench = Bench(servers, pool, folder)
        for case in cases:
            yield bench.measure(case)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks/throttle.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one case")
    parser.add_argument("--case", action="append", type=int, choices=range(len(CASES)), help="only this one")
    options = parser.parse_args(arguments)
    cases = CASES[:1] if options.quick else [CASES[number] for number in options.case or range(len(CASES))]
    print(f"{platform.node()}: {os.cpu_count()} cores, {platform.platform()}, load {os.getloadavg()[0]:.1f}")
    rows = []
    with termination_as_exit(), tempfile.TemporaryDirectory(prefix="twinlog-bench.") as folder:
        for one in measured(cases, Path(folder)):
            rows.append(one.row())
            print(" | ".join(one.row()), f"| load {os.getloadavg()[0]:.1f}", flush=True)
    print("\n".join(["", *table.lines(HEADER, rows)]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
