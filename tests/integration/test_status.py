"""`twinlog status` on real clusters: both ends reached, one down or paused named, and no password anywhere."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka.admin import NewTopic

from local.kafka import PLAINTEXT, SASL_SSL, KafkaCluster, KafkaClusters, KafkaSpec, start
from support.admin import admin_of
from support.mirroring import producer, twins
from support.silent import closed_port
from support.waiting import NOT_HUNG_S
from twinlog.cluster.access import ClusterAccess, flow_access
from twinlog.cluster.secrets import resolve
from twinlog.intake.topology_file import load
from twinlog.model.flow_state import State
from twinlog.operations.recovery_series import Event, Recovery, RecoverySeries
from twinlog.operations.status import Status, status

WRONG = "quite the wrong word"


def write_topology(folder: Path, clusters: dict[str, dict[str, str]], flows: dict[str, dict[str, Any]]) -> Path:
    file = folder / "topology.yaml"
    file.write_text(yaml.safe_dump({"clusters": clusters, "flows": flows}, sort_keys=False))
    return file


def twinlog(file: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "twinlog.cli", "--topology", str(file), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environ},
    )


def secured(trio: KafkaCluster, user: str, password_variable: str) -> dict[str, str]:
    """The cluster's settings as a topology may hold them: the password by reference."""
    settings = trio.client_settings(SASL_SSL, user)
    del settings["sasl.jaas.config"]
    return settings | {"sasl.username": user, "sasl.password": f"${{env:{password_variable}}}"}


def make_topics(cluster: KafkaCluster, *topics: NewTopic) -> None:
    admin = admin_of(ClusterAccess(cluster.name, resolve(cluster.client_settings(PLAINTEXT), environ={})))
    with admin.errors():
        for done in admin.create_topics(list(topics)).values():
            done.result(20)


def test_both_ends_are_reached_and_counted(kafka_pair: KafkaClusters, trio: KafkaCluster, tmp_path: Path) -> None:
    make_topics(kafka_pair["nyc"], NewTopic("status.orders", 3, 1), NewTopic("status.test", 1, 1))
    file = write_topology(
        tmp_path,
        {"nyc": kafka_pair["nyc"].client_settings(PLAINTEXT), "trio": secured(trio, "alice", "ALICE")},
        {"nyc->trio": {"topics": [r"status\..*"], "topics.exclude": [r".*\.test"]}},
    )

    done = twinlog(file, "--json", "status", ALICE=trio.spec.scram["alice"])

    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    (row,) = json.loads(done.stdout)["flows"]
    assert (row["flow"], row["state"], row["topics"], row["partitions"]) == ("nyc->trio", "active", 1, 3)
    assert [row[side]["reachable"] for side in ("source", "target")] == [True, True]
    assert [row[side]["brokers"] for side in ("source", "target")] == [1, 3]
    assert {"lag_records", "lag_seconds", "last_run", "groups_ready", "groups_not_ready", "last_verdict"} <= set(row)

    for_people = twinlog(file, "status", ALICE=trio.spec.scram["alice"])
    assert "nyc->trio" in for_people.stdout
    assert "trio: 3 brokers" in for_people.stdout


def test_one_cluster_down_hides_nothing_of_the_others(kafka_pair: KafkaClusters, tmp_path: Path) -> None:
    clusters = {name: kafka_pair[name].client_settings(PLAINTEXT) for name in ("nyc", "lon")}
    clusters["gone"] = {"bootstrap.servers": closed_port()}
    file = write_topology(
        tmp_path, clusters, {"nyc->lon": {"topics": ["status.none"]}, "nyc->gone": {}, "gone->lon": {}}
    )
    topology = load(file, {})

    found = status(topology, functools.partial(flow_access, topology), timeout_s=5)

    assert [row.state for row in found.flows] == ["active", "unreachable", "unreachable"]
    assert found.unreachable == ["gone"]
    assert found.exit_code == 3
    assert found.flows[1].source.reachable
    assert found.flows[1].topics is not None
    assert found.flows[2].topics is None
    assert "cluster gone (" in str(found.flows[2].source.error)


@pytest.mark.parametrize("debug", [[], ["--debug"]])
def test_a_wrong_password_is_said_and_never_shown(trio: KafkaCluster, tmp_path: Path, debug: list[str]) -> None:
    file = write_topology(
        tmp_path,
        {"one": secured(trio, "alice", "WRONG"), "two": secured(trio, "bob", "WRONG")},
        {"one->two": {}},
    )

    for arguments in (["status"], ["--json", "status"]):
        done = twinlog(file, *debug, *arguments, WRONG=WRONG)
        assert done.returncode == 3
        assert "cluster one (" in done.stderr
        assert "did not accept our credentials" in done.stderr
        assert WRONG not in done.stdout + done.stderr


def test_no_password_in_any_output_even_when_all_is_well(trio: KafkaCluster, tmp_path: Path) -> None:
    words = {"ALICE": trio.spec.scram["alice"], "BOB": trio.spec.plain["bob"]}
    file = write_topology(
        tmp_path,
        {"one": secured(trio, "alice", "ALICE"), "two": secured(trio, "bob", "BOB")},
        {"one->two": {}},
    )

    done = twinlog(file, "--debug", "status", **words)

    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert not [word for word in words.values() if word in said or repr(word)[1:-1] in said]


def test_a_paused_broker_is_named_within_the_time_out(tmp_path: Path, kafka_pair: KafkaClusters) -> None:
    with start([KafkaSpec("paused")], tmp_path / "kafka") as clusters:
        file = write_topology(
            tmp_path,
            {
                "nyc": kafka_pair["nyc"].client_settings(PLAINTEXT),
                "paused": clusters["paused"].client_settings(PLAINTEXT),
            },
            {"nyc->paused": {}},
        )
        assert twinlog(file, "status").returncode == 0
        clusters["paused"].pause_broker(0)
        try:
            begun = time.monotonic()
            done = twinlog(file, "status", "--timeout", "3")
            took_s = time.monotonic() - begun
        finally:
            clusters["paused"].resume_broker(0)

    assert done.returncode == 3
    assert "cluster paused (" in done.stderr
    assert "nyc: 1 broker" in done.stdout
    assert took_s < NOT_HUNG_S


def test_objectives_are_held_against_what_is_measured_also_where_the_source_is_gone(
    kafka_pair: KafkaClusters, tmp_path: Path
) -> None:
    topic = f"objectives-{uuid.uuid4().hex[:8]}"
    flow = twins(
        kafka_pair["nyc"].bootstrap_servers,
        kafka_pair["lon"].bootstrap_servers,
        tmp_path,
        (topic,),
        recovery_point_seconds=60,
        recovery_time_seconds=5,
    )
    flow.create(topic)
    assert flow.mirror().failures == []

    def look(**cluster: str) -> Status:
        clusters = {
            alias: replace(one, bootstrap_servers=cluster.get(alias, one.bootstrap_servers))
            for alias, one in flow.topology.clusters.items()
        }
        topology = replace(flow.topology, clusters=clusters)
        return status(topology, functools.partial(flow_access, topology), timeout_s=5)

    (row,) = look().flows
    assert (row.objectives.point.measured_by, row.objectives.point.met, row.objectives.time.met) == ("lag", True, None)

    writer = producer(flow.source_servers)
    writer.produce(topic, b"old", timestamp=int(time.time() * 1000) - 3_600_000)
    assert writer.flush(30) == 0
    RecoverySeries(flow.ledger).add(Recovery(flow.flow.name, 1, Event.DRILL, 7.5, 0.0, 0, 1, 1, 10, 0))
    found = look()
    assert found.exit_code == 1
    point, length = found.missed
    assert "the recovery point is missed: 3,6" in point
    assert length == f"{flow.flow.name}: the recovery time is missed: 7.5 s by the drill, 5 s wanted"

    gone = look(**{flow.flow.source: closed_port()})
    assert (gone.flows[0].state, gone.flows[0].objectives.point.measured_s) == ("unreachable", None)
    flow.change_record(lambda record: record.moved_to(State.FAILED_OVER, flow.flow.name))
    assert look(**{flow.flow.source: closed_port()}).flows[0].state == "failed over"
    over = look()
    assert (over.flows[0].state, over.flows[0].objectives.point.met) == ("failed over", None)
