"""`twinlog mirror` as people run it, on a Spark Connect server that is warm, with what it used.

The clock is the run's own (`seconds` of its JSON): survey, plan, copy and record, without starting Python. Memory and
CPU are counted apart: Python is the command itself and Spark's Python workers, which do the copying; the JVM is
Spark's, shared with whatever else runs there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.support.loads import Clusters
from benchmarks.support.usage import python_or_jvm, watched

from local.places import INCLUDE


@dataclass(frozen=True, slots=True)
class Copied:
    """One run, and what it took."""

    records: int
    bytes: int
    seconds: float
    python_cpu_s: float
    jvm_cpu_s: float
    python_peak_bytes: int
    jvm_peak_bytes: int


@dataclass(frozen=True, slots=True)
class Warm:
    """A Spark that is up: its address, and the process below which all of it runs."""

    url: str
    pid: int


def copy(clusters: Clusters, topic: str, folder: Path, spark: Warm, name: str) -> Copied:
    """Copy a topic as a flow of its own, so that it begins at the beginning; `name` is unique."""
    folder.mkdir(parents=True, exist_ok=True)
    topology = folder / f"{name}.yaml"
    flow = f"{name}-s->{name}-t"
    # JSON is YAML too.
    topology.write_text(
        json.dumps(
            {
                "clusters": {
                    f"{name}-s": {"bootstrap.servers": clusters.source},
                    f"{name}-t": {"bootstrap.servers": clusters.target},
                },
                "ledger": str(folder / "ledger"),
                "defaults": {"replication.factor": 1, "journal.topic.replication.factor": 1},
                "flows": {flow: {"topics": [topic]}},
            }
        )
    )
    # Just the topic: a flow takes heartbeats along, and MirrorMaker 2 leaves some on the source.
    command = [sys.executable, "-m", "twinlog.cli", "--topology", str(topology), "--json", "mirror", flow]
    command += ["--topic", topic]
    environ = {**os.environ, "TWINLOG_SPARK": spark.url, "PYTHONPATH": str(INCLUDE)}
    # Idle Python workers of an earlier session stay for a minute; they are not this run's.
    with watched([spark.pid], python_or_jvm, "python") as watch:
        process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        watch.roots.add(process.pid)
        out, problems = process.communicate()
    used = watch.add_up()
    if process.returncode != 0:
        raise RuntimeError(f"twinlog mirror of {topic} ended with exit code {process.returncode}:\n{problems}{out}")
    result = json.loads(out)
    return Copied(
        result["records"],
        result["bytes"],
        result["seconds"],
        used["python"].cpu_s,
        used["jvm"].cpu_s,
        used["python"].peak_bytes,
        used["jvm"].peak_bytes,
    )
