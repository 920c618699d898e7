"""Measures translation: a million look-ups against ten million segments, with the time and memory each step takes.

    python -m benchmarks.translate [SEGMENTS] [LOOKUPS]

The ledger is written to a temporary folder first; what is measured is what a failover does: read the ledger's files,
build the index, look up a table of offsets forward and back. Aim: under 5 s and under 2 GB. It is a process of its
own that measures, so that making up the data does not count.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TypeVar
from uuid import UUID

import numpy as np
import pyarrow as pa

from twinlog.ledger.answers import Twin
from twinlog.ledger.chain import Mark
from twinlog.ledger.schema import GAP_COLUMNS, IN_FILES, SOURCE_COLUMNS
from twinlog.ledger.store import Ledger
from twinlog.ledger.translate import COLUMNS, Translator
from twinlog.model.offsets import UNKNOWN, GapKind, PartitionPair

TOPICS, PARTITIONS = 100, 20
FILES = 10
RECORDS = 500
T = TypeVar("T")


def pairs() -> list[PartitionPair]:
    random = Random(5)
    found = []
    for topic in range(TOPICS):
        source, target = (UUID(int=random.getrandbits(128), version=4) for _ in range(2))
        found += [PartitionPair(f"t{topic}", source, f"nyc.t{topic}", target, n) for n in range(PARTITIONS)]
    return found


def fill(ledger: Ledger, segments: int) -> None:
    """Each file holds one stretch of every partition, as many runs that were merged would."""
    known = pairs()
    rows = segments // FILES // len(known)
    before = Mark()
    for number in range(FILES):
        places = np.repeat(np.arange(len(known)), rows)
        step = np.tile(np.arange(number * rows, (number + 1) * rows), len(known))
        columns: dict[str, object] = {
            "flow": ["nyc->lon"] * len(places),
            "run": [f"run-{number}"] * len(places),
            "digest": ["0123456789abcdef"] * len(places),
            "partition": (places % PARTITIONS).astype(np.int32),
            "source_start": step * (RECORDS + 2),
            "target_start": step * (RECORDS + 1),
            "count": np.full(len(places), RECORDS),
            **dict.fromkeys(GAP_COLUMNS.values(), np.zeros(len(places))),
            **dict.fromkeys(SOURCE_COLUMNS, np.full(len(places), UNKNOWN)),
            GAP_COLUMNS[GapKind.CONTROL]: np.full(len(places), 2),
        }
        for name in ("source_topic", "source_topic_id", "target_topic", "target_topic_id"):
            values = pa.array([str(getattr(pair, name)) for pair in known])
            columns[name] = values.take(pa.array(places))
        for name in ("first_timestamp_ms", "last_timestamp_ms", "bytes", "copied_at_ms"):
            columns[name] = np.full(len(places), 1_700_000_000_000)
        after = Mark("journal", {0: number + 1})
        ledger.append(pa.table([columns[name] for name in IN_FILES.names], schema=IN_FILES), before, after)
        before = after


def measure(root: str, segments: int, lookups: int) -> None:
    ledger = Ledger(root, "nyc", "lon")
    known = pairs()
    steps = segments // len(known)
    twins = [Twin(pair, (steps - 1) * (RECORDS + 2) + RECORDS, 0, steps * (RECORDS + 1)) for pair in known]
    generator = np.random.default_rng(1)
    places = generator.integers(0, len(known), lookups)
    asked = pa.table(
        {
            "topic": pa.array([pair.source_topic for pair in known]).take(pa.array(places)),
            "partition": pa.array((places % PARTITIONS).astype(np.int32)),
            "offset": generator.integers(0, steps * RECORDS, lookups),
        }
    )
    base_mb = _peak_mb()
    print(f"{segments:,} segments, {lookups:,} look-ups, {len(known):,} partitions; process before: {base_mb:.0f} MB")
    print(f"{'step':<12}{'seconds':>10}{'CPU':>10}{'peak MB':>10}")
    began, began_cpu = time.perf_counter(), time.process_time()
    translator = _timed("read, index", lambda: Translator(ledger.read(COLUMNS), twins))
    forward = _timed("forward", lambda: translator.table(asked))
    _print("together", began, began_cpu)
    targets = pa.array([pair.target_topic for pair in known]).take(pa.array(places))
    _timed("reverse", lambda: translator.table(asked.set_column(0, "topic", targets), reverse=True))
    print(f"answered: {lookups - forward['to_offset'].null_count:,}")


def _timed(name: str, work: Callable[[], T]) -> T:
    began, began_cpu = time.perf_counter(), time.process_time()
    result = work()
    _print(name, began, began_cpu)
    return result


def _print(name: str, began: float, began_cpu: float) -> None:
    seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    print(f"{name:<12}{seconds:>10.2f}{cpu:>10.2f}{_peak_mb():>10.0f}", flush=True)


def _peak_mb() -> float:
    """The process's own peak; getrusage's would include that of the process it was forked from."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        return
    sizes = [int(text) for text in sys.argv[1:]]
    segments, lookups = sizes[0] if sizes else 10_000_000, sizes[1] if len(sizes) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as root:
        fill(Ledger(root, "nyc", "lon"), segments)
        command = [sys.executable, "-m", "benchmarks.translate", "--measure", root, str(segments), str(lookups)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
