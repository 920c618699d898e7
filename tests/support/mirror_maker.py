"""MirrorMaker 2 itself, from Kafka's own jars, in its dedicated mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local import kafka_jars, preconditions, processes
from local.processes import Process
from support.mirroring import Twins

MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"
HEAP_MB = 384
_STOP_GRACE_S = 10.0
_FACTORS = (
    "replication.factor",
    "checkpoints.topic.replication.factor",
    "heartbeats.topic.replication.factor",
    "offset-syncs.topic.replication.factor",
    "offset.storage.replication.factor",
    "status.storage.replication.factor",
    "config.storage.replication.factor",
)


@contextmanager
def mirror_maker(flow: Twins, topics: str, folder: Path) -> Iterator[Process]:
    """It mirrors these topics between the flow's clusters, under the flow's aliases, while inside."""
    source, target = flow.flow.source, flow.flow.target
    properties = {
        "clusters": f"{source},{target}",
        f"{source}.bootstrap.servers": flow.source_servers,
        f"{target}.bootstrap.servers": flow.target_servers,
        f"{source}->{target}.enabled": "true",
        f"{target}->{source}.enabled": "false",
        f"{source}->{target}.topics": topics,
        "sync.topic.acls.enabled": "false",
        "offset.flush.interval.ms": "1000",
        **dict.fromkeys(_FACTORS, "1"),
    }
    file = folder / "mm2.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    logging = Path(processes.__file__).with_name("log4j2.properties")
    command = [str(preconditions.java()), f"-Xmx{HEAP_MB}m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    command += [f"-Dlog4j2.configurationFile={logging}", "-cp", kafka_jars.class_path(), MAIN, str(file)]
    process = Process("MirrorMaker 2", command, folder / "mm2.log")
    try:
        yield process
    finally:
        processes.stop([process], _STOP_GRACE_S)
