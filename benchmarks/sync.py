"""Measures a sync of 10,000 topics between real clusters: at first sight, applied, with nothing to do, with a little.

    python -m benchmarks.sync [--quick] [TOPICS]

Every topic has one partition, one override and one ACL. The yardstick is what it takes to make the same number of
topics and ACLs by plain requests of librdkafka's, until every topic shows a leader: it is how the source gets its own,
on a broker like the target's. Seconds are those of `twinlog --json sync` without starting Python; CPU is Twinlog's
share of them, the rest is the brokers'. Aim: applied in no more than 1.5 times the yardstick, and nothing to do in 5 s.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.support import table
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from local import kafka
from local.kafka import KafkaSpec
from local.processes import termination_as_exit
from twinlog import cli
from twinlog.cluster.raw import RawClient

TOPICS, QUICK_TOPICS = 10_000, 1_000
BATCH = 1_000
CHANGED_ONE_IN = 100
FLOW = "source->target"
# A log of an empty topic keeps two index files; as large as they come, 20,000 of them would fill the disk.
PROPERTIES = {"log.index.size.max.bytes": "4096"}
_EVERY_ACL = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)
HEADER = ("step", "seconds", "CPU s", "differences", "requests", "most of them")


@dataclass(frozen=True)
class Took:
    """What one step took."""

    seconds: float
    cpu_s: float
    requests: Counter[str]
    differences: int

    def row(self, name: str) -> tuple[str, ...]:
        most = ", ".join(f"{count} {request}" for request, count in self.requests.most_common(3))
        return (
            name,
            f"{self.seconds:.1f}",
            f"{self.cpu_s:.1f}",
            f"{self.differences:,}",
            f"{self.requests.total():,}",
            most,
        )


class Plain:
    """Somebody who makes topics on a cluster with librdkafka's own requests."""

    def __init__(self, servers: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": servers})

    def make(self, names: Sequence[str]) -> None:
        """The topics and an ACL for each, until all are to be seen and every topic has a leader."""
        for batch in _batches(names):
            _done(self._admin.create_topics([NewTopic(name, 1, 1, config={"retention.ms": "5000"}) for name in batch]))
            _done(self._admin.create_acls([_readable(name) for name in batch]))
        while not self._shows(names):
            time.sleep(0.5)

    def change(self, names: Sequence[str]) -> None:
        entry = ConfigEntry("retention.ms", "6000", incremental_operation=AlterConfigOpType.SET)
        resources = [ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[entry]) for name in names]
        _done(self._admin.incremental_alter_configs(resources))

    def _shows(self, names: Sequence[str]) -> bool:
        found = self._admin.list_topics(timeout=60).topics
        led = all(name in found and found[name].partitions[0].leader >= 0 for name in names)
        return led and len(self._admin.describe_acls(_EVERY_ACL).result()) == len(names)


def _readable(topic: str) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )


def _batches(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[start : start + BATCH] for start in range(0, len(names), BATCH))


def _done(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        future.result()


def sync(topology: Path, *options: str, expected: int) -> Took:
    """`twinlog --json sync`, with the requests that it sends counted."""
    with (
        counted() as requests,
        contextlib.redirect_stdout(io.StringIO()) as output,
        contextlib.redirect_stderr(io.StringIO()) as problems,
    ):
        began, began_cpu = time.perf_counter(), time.process_time()
        code = cli.main(["--topology", str(topology), "--json", "sync", FLOW, *options])
        seconds, cpu_s = time.perf_counter() - began, time.process_time() - began_cpu
    if code != expected:
        raise RuntimeError(
            f"sync {' '.join(options)} ended with exit code {code}: {problems.getvalue()}{output.getvalue()[:1_000]}"
        )
    return Took(seconds, cpu_s, requests, len(json.loads(output.getvalue())["changes"]))


@contextlib.contextmanager
def counted() -> Iterator[Counter[str]]:
    """Every request of this process to a cluster, by its name."""
    sent: Counter[str] = Counter()
    original = RawClient.request

    async def counting(client: RawClient, request: Any, *arguments: Any, **named: Any) -> Any:
        sent[request.name] += 1
        return await original(client, request, *arguments, **named)

    RawClient.request = counting  # type: ignore[method-assign]
    try:
        yield sent
    finally:
        RawClient.request = original  # type: ignore[method-assign]


def write_topology(path: Path, source: str, target: str) -> Path:
    # JSON is YAML too.
    path.write_text(
        json.dumps(
            {
                "clusters": {"source": {"bootstrap.servers": source}, "target": {"bootstrap.servers": target}},
                "defaults": {"replication.factor": 1, "journal.topic.replication.factor": 1},
                "flows": {FLOW: {"topics": ["topic-.*"]}},
            }
        )
    )
    return path


def measure(source: Plain, topology: Path, names: Sequence[str], report: Callable[[str], None]) -> None:
    rows: list[tuple[str, ...]] = []

    def step(name: str, took: Took) -> None:
        report(f"{name}: {took.seconds:.1f} s")
        rows.append(took.row(name))

    began, began_cpu = time.perf_counter(), time.process_time()
    source.make(names)
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - began_cpu
    step("plain requests to the source", Took(seconds, cpu_s, Counter(), 0))
    step("sync --dry-run, first sight", sync(topology, "--dry-run", expected=1))
    step("sync", sync(topology, expected=0))
    step("sync --dry-run, nothing to do", sync(topology, "--dry-run", expected=0))
    changed = names[::CHANGED_ONE_IN]
    source.change(changed)
    step(f"sync, {len(changed)} topics changed", sync(topology, expected=0))
    print("\n".join(table.lines(HEADER, rows)))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.sync")
    parser.add_argument("topics", nargs="?", type=int)
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args(arguments)
    count = asked.topics or (QUICK_TOPICS if asked.quick else TOPICS)
    names = [f"topic-{number:05}" for number in range(count)]
    with termination_as_exit(), tempfile.TemporaryDirectory(prefix="twinlog-bench.") as folder:
        specs = [
            KafkaSpec(name, authorizer=True, heap_mb=1024, quick_start=False, properties=PROPERTIES)
            for name in ("source", "target")
        ]
        with kafka.start(specs, Path(folder) / "kafka") as clusters:
            servers = [clusters[name].bootstrap_servers for name in ("source", "target")]
            topology = write_topology(Path(folder) / "topology.yaml", *servers)
            measure(Plain(servers[0]), topology, names, lambda text: print(text, flush=True))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
