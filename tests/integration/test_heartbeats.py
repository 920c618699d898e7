"""Heartbeats of a flow between real clusters: written to the source, mirrored, and their age on the target."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from local.kafka import KafkaClusters
from support.groups import planning
from support.mirroring import Twins, producer, twins
from support.reading import read_committed
from support.signs import SIGNS, heartbeats_to_be_removed
from support.source_logs import fill
from support.syncing import Hand
from twinlog import cli
from twinlog.model.naming import HEARTBEATS
from twinlog.operations.heartbeat import emit_heartbeat, heartbeat_age
from twinlog.wire.mirror_maker import Heartbeat

HOUR_S = 3600


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Iterator[Twins]:
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    with heartbeats_to_be_removed(nyc):
        made = twins(nyc, lon, tmp_path, (topic,), **SIGNS)
        made.create(topic)
        yield made


def beats(servers: str, topic: str, flow: Twins) -> list[int]:
    """The times of the flow's heartbeats, the oldest first."""
    ours = Heartbeat(flow.flow.source, flow.flow.target, 0).key()
    records = read_committed(servers, topic)[0]
    return [
        Heartbeat.decode(seen.key, seen.value, topic).timestamp_ms
        for seen in records
        if seen.key == ours and seen.value is not None
    ]


def age(flow: Twins) -> float | None:
    access = flow.ends().target
    with access.raw() as target:
        return heartbeat_age(flow.flow, access, target)


def write_heartbeat(flow: Twins, heartbeat: Heartbeat, times: int = 1) -> None:
    writer = producer(flow.source_servers)
    for _ in range(times):
        writer.produce(HEARTBEATS, heartbeat.value(), heartbeat.key())
    assert writer.flush(30) == 0


def test_the_command_writes_one_and_status_shows_its_age_once_it_is_mirrored(
    flow: Twins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "topology.yaml"
    settings = {"topics": list(flow.flow.topics), "replication.factor": 1, "journal.topic.replication.factor": 1}
    file.write_text(
        yaml.safe_dump(
            {
                "clusters": {
                    alias: {"bootstrap.servers": one.bootstrap_servers} for alias, one in flow.topology.clusters.items()
                },
                "flows": {flow.flow.name: settings},
                "ledger": flow.topology.ledger,
            }
        )
    )

    before_ms = int(time.time() * 1000)
    assert cli.main(["--topology", str(file), "--json", "heartbeat", flow.flow.name]) == 0
    written = json.loads(capsys.readouterr().out)
    assert flow.mirror().failures == []
    assert cli.main(["--topology", str(file), "--json", "status", flow.flow.name]) == 0
    (row,) = json.loads(capsys.readouterr().out)["flows"]

    assert (written["cluster"], written["topic"], written["skipped"]) == (flow.flow.source, HEARTBEATS, None)
    assert before_ms <= written["timestamp_ms"] <= time.time() * 1000
    assert written["timestamp_ms"] in beats(flow.target_servers, flow.twin(HEARTBEATS), flow)
    assert 0 <= row["heartbeat_age_s"] <= time.time() - before_ms / 1000
    overrides = Hand(flow.source_servers).overrides(HEARTBEATS)
    assert overrides["cleanup.policy"] == "compact"
    assert Hand(flow.source_servers).partitions(HEARTBEATS) == 1


def test_each_run_writes_one_at_most_once_in_the_interval_and_the_next_run_brings_it(flow: Twins) -> None:
    patient = flow.with_settings(emit_heartbeats_interval_seconds=HOUR_S)

    assert flow.mirror().failures == []
    first = beats(flow.source_servers, HEARTBEATS, flow)
    assert (len(first), age(flow)) == (1, None), "its topic is new: the next run brings it"
    assert patient.mirror().failures == []
    assert beats(flow.source_servers, HEARTBEATS, flow) == first
    assert age(flow) == pytest.approx(time.time() - first[0] / 1000, abs=5)

    write_heartbeat(flow, Heartbeat(flow.flow.source, flow.flow.target, int((time.time() - 2 * HOUR_S) * 1000)))
    assert patient.mirror().failures == []
    assert len(beats(flow.target_servers, flow.twin(HEARTBEATS), flow)) == 3

    ahead_ms = int((time.time() + HOUR_S) * 1000)
    write_heartbeat(flow, Heartbeat(flow.flow.source, flow.flow.target, ahead_ms))
    assert patient.mirror().failures == []
    *_, before_ms, last_ms = beats(flow.source_servers, HEARTBEATS, flow)
    assert last_ms < before_ms == ahead_ms, "a clock that was ahead keeps no heartbeats away"


def test_the_age_is_the_flows_own_however_many_others_share_the_topic(flow: Twins) -> None:
    source, target = flow.flow.source, flow.flow.target
    emit_heartbeat(flow.flow, flow.ends().source, flow.ends().target)
    write_heartbeat(flow, Heartbeat(source, target, int((time.time() - HOUR_S) * 1000)))
    write_heartbeat(flow, Heartbeat(source, "elsewhere", int(time.time() * 1000)), times=250)
    quiet = flow.with_settings(emit_heartbeats_enabled=False)

    assert quiet.mirror().failures == []

    found = age(flow)
    assert found is not None
    assert HOUR_S <= found < HOUR_S + 60


def test_a_group_that_has_never_committed_goes_on_by_time_on_every_topic_but_heartbeats(
    flow: Twins, topic: str
) -> None:
    fill(flow.source_servers, topic, range(5))
    emit_heartbeat(flow.flow, flow.ends().source, flow.ends().target)
    assert flow.mirror().failures == []

    found = planning(flow).plan(f"readers-{topic}", at_ms=0)

    assert beats(flow.target_servers, flow.twin(HEARTBEATS), flow)
    assert [(row["topic"], row["partition"], row["offset"]) for row in found.plan] == [(flow.twin(topic), 0, 0)]


def test_nothing_is_written_where_the_flow_says_so(flow: Twins) -> None:
    quiet = flow.with_settings(emit_heartbeats_enabled=False)

    skipped = emit_heartbeat(quiet.flow, flow.ends().source, flow.ends().target)
    quiet.mirror()

    assert skipped.timestamp_ms is None
    assert skipped.skipped == f"{flow.flow.name}: emit.heartbeats.enabled is false"
    assert HEARTBEATS not in Hand(flow.source_servers).topics()


def test_where_names_are_kept_heartbeats_still_tell_where_they_came_from(flow: Twins) -> None:
    same = flow.with_settings(naming="identity", emit_heartbeats_interval_seconds=HOUR_S)
    emit_heartbeat(same.flow, flow.ends().source, flow.ends().target)

    assert same.mirror().failures == []

    assert len(beats(flow.target_servers, f"{flow.flow.source}.{HEARTBEATS}", flow)) == 1
    assert age(same) is not None
