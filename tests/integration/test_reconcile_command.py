"""`twinlog reconcile` as people and scripts run it, on a Spark Connect server and under spark-submit's job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.kafka import KafkaClusters
from local.places import INCLUDE
from support.exposition import read_exposition, series
from support.mirroring import Twins, twins
from support.source_logs import fill
from twinlog import cli


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    source, target = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    flow = twins(source, target, tmp_path, (topic,))
    flow.create(topic, 3)
    for number in range(3):
        fill(source, topic, range(20), number)
    flow.mirror()
    return flow


@pytest.fixture
def topology(flow: Twins, tmp_path: Path, spark_connect: str) -> Path:
    """The flow as people write it, with a Spark on either side."""
    file = tmp_path / "topology.yaml"
    servers = {flow.flow.source: flow.source_servers, flow.flow.target: flow.target_servers}
    settings = {
        "topics": list(flow.flow.topics),
        "lanes": 2,
        "replication.factor": 1,
        "emit.heartbeats.enabled": False,
        "emit.checkpoints.enabled": False,
        "canary.enabled": False,
        "spark": spark_connect,
        "reconcile.source.spark": spark_connect,
    }
    content = {
        # The flow has run by the test's own description, which is another.
        "version": 1,
        "clusters": {alias: {"bootstrap.servers": address} for alias, address in servers.items()},
        "ledger": flow.topology.ledger,
        "flows": {flow.flow.name: settings},
    }
    file.write_text(yaml.safe_dump(content))
    return file


def asked(topology: Path, *words: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "twinlog.cli", "--topology", str(topology), "--json", *words]
    environ = {**os.environ, "PYTHONPATH": str(INCLUDE)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, answer


def test_the_command_proves_on_spark_and_ends_with_1_on_a_difference(
    flow: Twins, topology: Path, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = tmp_path / "twinlog.prom"
    code, equal = asked(topology, "reconcile", flow.flow.name, "--metrics", str(metrics))
    assert (code, equal["verdict"], equal["differences"], equal["records"]) == (0, "equal", [], 60)
    assert equal["bytes_crossed"] == 0 < equal["bytes_read"]
    assert read_exposition(metrics.read_text())[series("twinlog_reconcile_equal", flow=flow.flow.name)] == 1
    fill(flow.target_servers, flow.twin(topic), ["not ours"], 1)
    code, different = asked(topology, "reconcile", flow.flow.name, "--topics", "orders-.*", "--full", "--deep")
    assert (code, different["verdict"]) == (1, "different")
    (row,) = different["differences"]
    assert {name: row[name] for name in ("kind", "topic", "partition", "source_offset", "target_offset")} == {
        "kind": "foreign",
        "topic": topic,
        "partition": 1,
        "source_offset": None,
        "target_offset": 21,
    }
    assert Path(different["report"].removeprefix("file://")).exists()
    cli.main(["--topology", str(topology), "--json", "status"])
    (shown,) = json.loads(capsys.readouterr().out)["flows"]
    assert shown["last_verdict"] == "different"
    code, planned = asked(topology, "repair", flow.flow.name, "--dry-run")
    assert (code, planned["complete"], planned["plan"]["remedies"]) == (0, False, ["recopy", "checkpoints"])
    assert len(flow.read_target(topic)[1]) == 21
    code, done = asked(topology, "repair", flow.flow.name, "--yes")
    assert (code, done["failure"], done["verdict"]) == (0, None, "equal")
    assert done["recopied"] == [flow.twin(topic)]
    assert flow.read_target(topic) == flow.read_source(topic)


@pytest.mark.parametrize("words", [("--topics", "("), ("--rate", "0"), ("--since", "yesterday")])
def test_a_wrong_argument_is_wrong_use(topology: Path, flow: Twins, words: tuple[str, str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--topology", str(topology), "reconcile", flow.flow.name, *words])
    assert ended.value.code == 2
