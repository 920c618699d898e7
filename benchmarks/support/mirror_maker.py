"""MirrorMaker 2, from Kafka's own jars, copying one topic: 4 tasks and 4 GB of heap, everything else as it comes.

How it is measured: its start-up does not count, nor do its first seconds. The clock starts when a twentieth of what
it is to copy is on the target (`warm_share`), since the JVM compiles until then, and stops when all of it is; both are
read off the target's log ends, five times a second, so nobody has to believe what a tool says of itself. CPU is that of
its process between the same two moments, memory its peak.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.support.loads import Clusters, Load, admin_of, record_count
from benchmarks.support.usage import watched
from confluent_kafka import KafkaError, KafkaException

from local import kafka_jars, preconditions, processes
from local.processes import Process

MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"
SOURCE, TARGET = "mmsource", "mmtarget"
TASKS, HEAP_MB = 4, 4096
WARM_SHARE = 0.05
_LOOK_EVERY_S = 0.2
_NO_LEADER = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.UNKNOWN_TOPIC_OR_PART)
_START_TIMEOUT_S = 120.0
_STOP_GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied while the clock ran, and what that took."""

    records: int
    seconds: float
    cpu_s: float
    peak_bytes: int
    heap_mb: int = HEAP_MB


def copy(clusters: Clusters, load: Load, folder: Path, most_s: float) -> Copied:
    """Let it copy the load's topic until all is there, or for `most_s` once it is warm."""
    with _running(clusters, load.topic, folder) as process:
        twin = _Twin(process, clusters.target, load)
        began_at = twin.await_records(int(load.records * WARM_SHARE), _START_TIMEOUT_S)
        if began_at is None:
            raise RuntimeError(f"MirrorMaker 2 has hardly begun after {_START_TIMEOUT_S:.0f} s; see {process.log}")
        began = time.monotonic()
        with watched([process.pid]) as watch:
            ended_at = twin.await_records(load.records, most_s) or twin.records()
            seconds = time.monotonic() - began
        used = watch.add_up()["all"]
    return Copied(ended_at - began_at, seconds, used.cpu_s, used.peak_bytes)


@contextmanager
def _running(clusters: Clusters, topic: str, folder: Path) -> Iterator[Process]:
    folder.mkdir(parents=True, exist_ok=True)
    properties = folder / "mm2.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in _properties(clusters, topic).items()))
    logging = Path(processes.__file__).with_name("log4j2.properties")
    command = [str(preconditions.java()), f"-Xmx{HEAP_MB}m", f"-Xms{HEAP_MB // 4}m", "-XX:+UseG1GC"]
    command += [f"-Dlog4j2.configurationFile={logging}", "-cp", kafka_jars.class_path(), MAIN, str(properties)]
    process = Process("MirrorMaker 2", command, folder / "mm2.log")
    try:
        yield process
    finally:
        processes.stop([process], _STOP_GRACE_S)


def _properties(clusters: Clusters, topic: str) -> dict[str, str]:
    """As its documentation begins; replication factors are those of a cluster of one broker."""
    return {
        "clusters": f"{SOURCE},{TARGET}",
        f"{SOURCE}.bootstrap.servers": clusters.source,
        f"{TARGET}.bootstrap.servers": clusters.target,
        f"{SOURCE}->{TARGET}.enabled": "true",
        f"{TARGET}->{SOURCE}.enabled": "false",
        f"{SOURCE}->{TARGET}.topics": topic,
        "tasks.max": str(TASKS),
        **dict.fromkeys(
            (
                "replication.factor",
                "checkpoints.topic.replication.factor",
                "heartbeats.topic.replication.factor",
                "offset-syncs.topic.replication.factor",
                "offset.storage.replication.factor",
                "status.storage.replication.factor",
                "config.storage.replication.factor",
            ),
            "1",
        ),
    }


class _Twin:
    """The topic that MirrorMaker 2 makes on the target."""

    def __init__(self, process: Process, servers: str, load: Load) -> None:
        self._process = process
        self._admin = admin_of(servers)
        self._topic = f"{SOURCE}.{load.topic}"
        self._partitions = load.partitions

    def await_records(self, wanted: int, timeout_s: float) -> int | None:
        """Wait until so many records are there, and say how many there are; None where that takes too long."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            found = self.records()
            if found >= max(wanted, 1):
                return found
            if not self._process.running:
                log, last = self._process.log, self._process.last_lines()
                raise RuntimeError(f"MirrorMaker 2 ended; the last lines of {log}:\n{last}")
            time.sleep(_LOOK_EVERY_S)
        return None

    def records(self) -> int:
        topic = self._admin.list_topics(timeout=10).topics.get(self._topic)
        if topic is None or len(topic.partitions) < self._partitions:
            return 0
        try:
            return record_count(self._admin, self._topic, self._partitions)
        except KafkaException as not_yet:
            # In the first moments of a topic its partitions have no leader.
            if not_yet.args[0].code() not in _NO_LEADER:
                raise
            return 0
