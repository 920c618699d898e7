"""Measures copying against MirrorMaker 2 and against the machine's own limit: same data, same machine, same run.

    make bench-copy                 all cases, most of an hour
    make bench-copy BENCH=quick     four cases with less data, within 5 minutes

For each case a topic is filled on one local cluster and copied to another: by Twinlog on a warm Spark Connect server,
and by MirrorMaker 2 of the same Kafka jars. Which of the two goes first changes from case to case. Beside them stands
what the machine can do at all (`limits`). MirrorMaker 2 copies a part of the data where all of it would take
too long; rates are compared, not times. MB are 1,000,000 bytes of record batches as they are stored, that is,
compressed where the case is.
"""

from __future__ import annotations

import sys

if __package__ is None:
    # Run by its path, this folder comes first, and all who want the standard library's `copy` would be given this file.
    sys.path[0] = sys.path[0].rpartition("/")[0] or "."

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.support import loads, mirror_maker, table, twinlog_run, usage
from benchmarks.support.limits import Limits, Looks
from benchmarks.support.loads import Load

from local import kafka, spark
from local.kafka import KafkaSpec
from local.processes import termination_as_exit

RATES = ("case", "Twinlog MB/s", "records/s", "MM2 MB/s", "records/s", "ratio", "fetch only", "produce only", "in turn",
         "at once", "of the limit", "whole run MB/s", "machine load")  # fmt: skip
COSTS = ("case", "Twinlog CPU s/GB", "Spark's JVM", "MM2 CPU s/GB", "share", "Twinlog peak MB", "Spark's JVM",
         "MM2 peak MB")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form:
    """How much is measured."""

    loads: tuple[Load, ...]
    warm_up_records: int
    limit_bytes: int
    mirror_maker_s: float


@dataclass(frozen=True, slots=True)
class Measured:
    """One case. What a run of next to nothing takes is start-up, which does not count for MirrorMaker 2 either."""

    load: Load
    start_up: twinlog_run.Copied
    twinlog: twinlog_run.Copied
    mirror_maker: mirror_maker.Copied
    limits: Limits
    machine_load: float

    @property
    def name(self) -> str:
        return f"{self.load.record_bytes:,} B, {self.load.codec}, {self.load.partitions} partitions"

    @property
    def record_bytes(self) -> float:
        """As stored."""
        return self.twinlog.bytes / self.load.records

    def rates(self) -> list[str]:
        rate = self.twinlog.bytes / (self.twinlog.seconds - self.start_up.seconds)
        their_records = self.mirror_maker.records / self.mirror_maker.seconds
        their_rate = their_records * self.record_bytes
        found = self.limits
        return [
            self.name,
            f"{rate / 1e6:.1f}",
            f"{rate / self.record_bytes:,.0f}",
            f"{their_rate / 1e6:.1f}",
            f"{their_records:,.0f}",
            table.times(rate, their_rate),
            *(f"{one / 1e6:.0f}" for one in (found.fetch, found.produce, found.in_turn, found.at_once)),
            table.share(rate, found.copying),
            f"{self.twinlog.bytes / self.twinlog.seconds / 1e6:.1f}",
            f"{self.machine_load:.1f}",
        ]

    def costs(self) -> list[str]:
        gigabytes = self.twinlog.bytes / 1e9
        cpu = (self.twinlog.python_cpu_s - self.start_up.python_cpu_s) / gigabytes
        spark_cpu = (self.twinlog.jvm_cpu_s - self.start_up.jvm_cpu_s) / gigabytes
        their_cpu = self.mirror_maker.cpu_s / (self.mirror_maker.records * self.record_bytes / 1e9)
        return [
            self.name,
            f"{cpu:.1f}",
            f"{max(spark_cpu, 0):.1f}",
            f"{their_cpu:.1f}",
            table.share(cpu, their_cpu),
            f"{self.twinlog.python_peak_bytes / 1e6:.0f}",
            f"{self.twinlog.jvm_peak_bytes / 1e6:.0f}",
            f"{self.mirror_maker.peak_bytes / 1e6:.0f}",
        ]


def form(quick: bool) -> Form:
    sizes = (1_000,) if quick else (100, 1_000, 10_000)
    codecs = ("none", "lz4") if quick else ("none", "lz4", "zstd")
    # Some seconds of copying each: in less, a start-up that is a tenth of a second off would show.
    raw = 800_000_000 if quick else 1_200_000_000
    return Form(
        tuple(
            # Small records cost a producer most; compressed ones shrink, and the copy must not be over at once.
            Load(size, codec, partitions, min(raw * (1 if codec == "none" else 2) // size, 6_000_000))
            for size in sizes
            for codec in codecs
            for partitions in (4, 200)
        ),
        warm_up_records=500_000 if quick else 1_000_000,
        limit_bytes=500_000_000 if quick else 1_000_000_000,
        mirror_maker_s=10 if quick else 40,
    )


class Bench:
    """Two clusters and a warm Spark, and what is measured on them."""

    def __init__(self, clusters: loads.Clusters, warm: twinlog_run.Warm, folder: Path, form: Form) -> None:
        self._clusters = clusters
        self._spark = warm
        self._folder = folder
        self._form = form
        self._runs = 0

    def warm_up(self) -> None:
        """A case that nobody counts: files come into the cache, and brokers compile until a third copy is as quick as
        a fourth."""
        first = Load(1_000, "lz4", 8, self._form.warm_up_records)
        loads.fill(self._clusters.source, first)
        self._looks(first).look()
        for _ in range(3):
            self._twinlog(first)
        self._clear(first)

    def start_up(self) -> twinlog_run.Copied:
        """What a run takes that copies next to nothing, with everything that a run has."""
        tiny = Load(1_000, "none", 4, 400)
        loads.fill(self._clusters.source, tiny)
        found = min((self._twinlog(tiny) for _ in range(2)), key=lambda one: one.seconds)
        self._clear(tiny)
        return found

    def measure(self, number: int, load: Load, start_up: twinlog_run.Copied) -> Measured:
        loads.fill(self._clusters.source, load)
        machine_load = os.getloadavg()[0]
        # In turns, so that neither always finds the brokers as the other has left them.
        theirs = self._mirror_maker(load) if number % 2 else None
        # The machine's own speed changes: what it can do is looked at on both sides of our run.
        looks = self._looks(load)
        before = looks.look()
        ours = self._twinlog(load)
        after = looks.look()
        theirs = theirs or self._mirror_maker(load)
        self._clear(load)
        return Measured(load, start_up, ours, theirs, before.mean(after), machine_load)

    def _looks(self, load: Load) -> Looks:
        return Looks(self._clusters, load.topic, load.partitions, self._form.limit_bytes)

    def _twinlog(self, load: Load) -> twinlog_run.Copied:
        self._runs += 1
        folder, name = self._folder / "twinlog", f"run{self._runs}"
        copied = twinlog_run.copy(self._clusters, load.topic, folder, self._spark, name)
        if copied.records != load.records:
            found = loads.record_count(loads.admin_of(self._clusters.source), load.topic, load.partitions)
            raise RuntimeError(f"{load.topic} has {found} records, and {copied.records} were copied; see {folder}")
        return copied

    def _mirror_maker(self, load: Load) -> mirror_maker.Copied:
        folder = self._folder / "mm2" / load.topic
        return mirror_maker.copy(self._clusters, load, folder, self._form.mirror_maker_s)

    def _clear(self, load: Load) -> None:
        for servers in self._clusters:
            loads.delete_topics(servers, load.topic)


def measured(form: Form, folder: Path) -> Iterator[Measured]:
    """The cases, one by one, on clusters that live as long as somebody asks for more."""
    with ExitStack() as stack:
        # Large segments: rolling one is a pause that belongs to the disk.
        options = {"log.segment.bytes": str(1 << 30), "num.io.threads": "4"}
        specs = [KafkaSpec(name, heap_mb=1024, quick_start=False, properties=options) for name in ("source", "target")]
        clusters = stack.enter_context(kafka.start(specs, folder / "kafka", report=_say))
        url = stack.enter_context(spark.connect_server(folder / "spark", report=_say))
        servers = loads.Clusters(clusters["source"].bootstrap_servers, clusters["target"].bootstrap_servers)
        bench = Bench(servers, twinlog_run.Warm(url, usage.child_running("SparkConnectServer")), folder, form)
        bench.warm_up()
        start_up = bench.start_up()
        _say(f"bench: a run of next to nothing takes {start_up.seconds:.1f} s, {start_up.python_cpu_s:.1f} CPU s")
        for number, load in enumerate(form.loads):
            _say(f"bench: {load.topic}, {load.records:,} records")
            yield bench.measure(number, load, start_up)


def _say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks/copy.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="1-KB records, none and lz4: within 5 minutes")
    parser.add_argument("--case", help="only cases whose topic contains this, such as 1000-lz4-4")
    options = parser.parse_args(arguments)
    chosen = form(options.quick)
    if options.case:
        chosen = Form(
            tuple(load for load in chosen.loads if options.case in load.topic),
            chosen.warm_up_records,
            chosen.limit_bytes,
            chosen.mirror_maker_s,
        )
    # Where Python is told to write no bytecode, every process would compile all of its modules anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    print(f"{platform.node()}: {os.cpu_count()} cores, {platform.platform()}, load {os.getloadavg()[0]:.1f}")
    with termination_as_exit(), tempfile.TemporaryDirectory(prefix="twinlog-bench.") as folder:
        cases = []
        for one in measured(chosen, Path(folder)):
            cases.append(one)
            _say(" | ".join(one.rates()))
    print("\n".join(table.lines(RATES, [one.rates() for one in cases])), end="\n\n")
    print("\n".join(table.lines(COSTS, [one.costs() for one in cases])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
