"""`twinlog failback`, as people and scripts use it; what it copies, it copies on Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from local.kafka import KafkaClusters
from support.failing_back import fail_over, new_name, numbered, values_of, write
from support.mirroring import NO_HEARTBEATS, twins
from support.takeovers import topology_file
from twinlog import cli
from twinlog.intake.topology_file import load
from twinlog.model.flow_state import State


def test_a_plan_is_shown_and_carried_out_on_spark(
    kafka_pair: KafkaClusters, tmp_path: Path, capsys: pytest.CaptureFixture[str], spark_connect: str
) -> None:
    topic = new_name()
    flow = twins(kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers, tmp_path, (topic,))
    name, twin = flow.flow.name, flow.twin(topic)
    settings = {"replication.factor": 1, "journal.topic.replication.factor": 1, **NO_HEARTBEATS}
    file = topology_file(flow, tmp_path, **settings, **{"emit.checkpoints.enabled": False})
    topology = load(file)
    flow = replace(flow, topology=topology, flow=topology.flow(name))
    flow.create(topic)
    write(flow.source_servers, topic, numbered("a", 4))
    assert flow.mirror().failures == []
    write(flow.source_servers, topic, ["s0", "s1"])
    fail_over(flow)
    write(flow.target_servers, twin, ["b"])
    asked = ["--topology", str(file), "failback", name, "--stranded", "append"]

    assert cli.main(asked) == 2
    assert "Nobody can be asked here: say --yes" in capsys.readouterr().err
    assert cli.main([*asked, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert f"stranded: {topic}-0 offset 4, key 's0'" in shown
    assert f"the order changes in {topic}-0: on {flow.flow.source} its offsets 4 to 5" in shown
    assert cli.main(["--json", *asked, "--dry-run"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert (plan["stranded_records"], plan["topics"]) == (2, {twin: topic})
    assert flow.record().state is State.FAILED_OVER

    done = subprocess.run(
        [sys.executable, "-m", "twinlog.cli", "--json", *asked, "--quiet", "0.1", "--yes"],
        env={**os.environ, "TWINLOG_SPARK": spark_connect},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["complete"], said["figures"]["came_home"], said["figures"]["verdict"]) == (True, 1, "equal")
    assert values_of(flow.source_servers, topic) == [*numbered("a", 4), "s0", "s1", "b"]
    assert values_of(flow.target_servers, twin) == [*numbered("a", 4), "b", "s0", "s1"]

    assert cli.main([*asked, "--yes"]) == 1
    assert f"{name} is active: only a flow that has failed over can fail back" in capsys.readouterr().err
    assert cli.main(["--topology", str(file), "failback", name, "--abandon"]) != 0
    assert "no failback is under way" in capsys.readouterr().err
