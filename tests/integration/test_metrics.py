"""Figures of real flows: what a look at one measures, and the files that the commands write."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.kafka import KafkaClusters
from support.exposition import Series, read_exposition, series
from support.mirroring import NO_HEARTBEATS, Twins, create_topic, producer, twins
from twinlog.cluster.access import flow_access
from twinlog.model.metrics import REGISTRY, exposition
from twinlog.operations.metrics import collect
from twinlog.operations.status import status

HOUR_MS = 3_600_000


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def pair(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    return twins(nyc, lon, tmp_path, (topic,))


def look(pair: Twins) -> dict[Series, float]:
    accesses = functools.partial(flow_access, pair.topology)
    collected = collect(pair.topology, accesses, status(pair.topology, accesses))
    assert collected.problems == []
    return read_exposition(exposition(collected.samples))


def feed(pair: Twins, topic: str, records: int, age_ms: int) -> None:
    writer = producer(pair.source_servers)
    for number in range(records):
        stamp = int(time.time() * 1000) - age_ms
        writer.produce(topic, b"v" * 200, f"key {number}", partition=number % 2, timestamp=stamp)
    assert writer.flush(30) == 0


def test_what_waits_how_fast_it_comes_and_when_it_expires(pair: Twins, topic: str) -> None:
    flow = pair.flow.name
    pair.create(topic, 2, retention_ms=str(24 * HOUR_MS))
    feed(pair, topic, 200, HOUR_MS)
    pair.mirror()
    even = look(pair)
    feed(pair, topic, 300, 0)
    behind = look(pair)

    of_topic = {"flow": flow, "topic": topic}
    assert even[series("twinlog_lag_bytes", **of_topic)] == 0
    assert even[series("twinlog_time_to_catch_up_seconds", flow=flow)] == 0
    assert even[series("twinlog_source_records_per_second", flow=flow)] < 1, "an hour ago is not now"
    assert series("twinlog_time_until_expiry_seconds", **of_topic) not in even, "nothing waits"
    assert series("twinlog_heartbeat_age_seconds", flow=flow) not in even, "flows of tests have none"

    assert behind[series("twinlog_lag_records", **of_topic)] == 300
    # 200 bytes of value and some of overhead each, whatever the compression of the batches' headers.
    assert 300 * 200 < behind[series("twinlog_lag_bytes", **of_topic)] < 300 * 400
    assert behind[series("twinlog_source_records_per_second", flow=flow)] == pytest.approx(1.0, abs=0.1)
    assert 200 < behind[series("twinlog_source_bytes_per_second", flow=flow)] < 400
    assert 24 * 3600 - 300 < behind[series("twinlog_time_until_expiry_seconds", **of_topic)] <= 24 * 3600
    # Its one run was over in a moment, which tells nothing of what it could do.
    assert series("twinlog_copy_capacity_bytes_per_second", flow=flow) not in behind
    assert series("twinlog_time_to_catch_up_seconds", flow=flow) not in behind


def twinlog(topology: Path, spark: str, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "twinlog.cli", "--topology", str(topology), "--json", *arguments],
        env={**os.environ, "TWINLOG_SPARK": spark},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_each_command_writes_its_file(
    kafka_pair: KafkaClusters, tmp_path: Path, topic: str, spark_connect: str
) -> None:
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    mark = uuid.uuid4().hex[:6]
    flow = f"nyc{mark}->lon{mark}"
    topology = tmp_path / "topology.yaml"
    clusters = {f"nyc{mark}": {"bootstrap.servers": nyc}, f"lon{mark}": {"bootstrap.servers": lon}}
    defaults = {"replication.factor": 1, "journal.topic.replication.factor": 1, "lanes": 2, **NO_HEARTBEATS}
    topology.write_text(
        yaml.safe_dump({"clusters": clusters, "defaults": defaults, "flows": {flow: {"topics": [topic]}}})
    )
    create_topic(nyc, topic, 1, {})
    writer = producer(nyc)
    writer.produce(topic, "a record")
    writer.flush()
    files = {verb: tmp_path / f"{verb}.prom" for verb in ("mirror", "canary", "reconcile", "status")}

    run = twinlog(topology, spark_connect, "mirror", flow, "--metrics", str(files["mirror"]))
    canary = twinlog(topology, spark_connect, "canary", flow, "--records", "7", "--metrics", str(files["canary"]))
    proof = twinlog(topology, spark_connect, "reconcile", flow, "--metrics", str(files["reconcile"]))
    (status,) = twinlog(topology, spark_connect, "status", "--metrics", str(files["status"]))["flows"]

    found = {verb: read_exposition(file.read_text()) for verb, file in files.items()}
    assert found["mirror"][series("twinlog_run_records", flow=flow)] == run["records"] > 0
    assert found["mirror"][series("twinlog_findings", flow=flow, kind="expired")] == 0
    assert series("twinlog_copier_batch_bytes_mean", flow=flow) in found["mirror"]
    assert (canary["sent"], canary["arrived"], canary["lost"], canary["altered"]) == (7, 7, 0, 0)
    assert 0 < canary["latency_p50_s"] <= canary["latency_p99_s"]
    assert found["canary"][series("twinlog_canary_sent_records", flow=flow)] == 7
    assert found["status"][series("twinlog_lag_records", flow=flow, topic=topic)] == 0
    assert (proof["verdict"], status["last_verdict"]) == ("equal", "equal")
    assert found["reconcile"][series("twinlog_reconcile_differences", flow=flow, kind="missing")] == 0
    assert found["status"][series("twinlog_twin_equal", flow=flow)] == 1
    assert 0 <= found["status"][series("twinlog_verdict_age_seconds", flow=flow)] < 120
    # One collector may read all of the files: no series is in two of them.
    everything = [one for samples in found.values() for one in samples]
    assert len(everything) == len(set(everything))
    assert {name for name, _ in everything} <= set(REGISTRY)
