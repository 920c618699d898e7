"""What scripts and people see of groups: the verbs, a run that ends with checkpoints, and missing permissions."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.kafka import KafkaClusters
from support.groups import checkpoint, commit, committed, read
from support.guarded import MIRROR, allow_copying, as_mirror
from support.mirroring import NO_HEARTBEATS, Twins, create_topic, twins
from support.silent import closed_port
from support.source_logs import fill
from support.syncing import Hand, both_ways
from twinlog import cli
from twinlog.model.checkpoints import Reason
from twinlog.model.flow_state import State
from twinlog.model.naming import checkpoints_topic
from twinlog.model.offsets import TopicPartition
from twinlog.operations.lease import flow_store
from twinlog.operations.readiness import ReadinessTables
from twinlog.operations.translate import translator_of


def topology_file(flow: Twins, folder: Path, source_servers: str | None = None) -> Path:
    """The flow as people write it."""
    servers = {flow.flow.source: source_servers or flow.source_servers, flow.flow.target: flow.target_servers}
    file = folder / "topology.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                # The flow has run by other settings: the file that is to hold now says so.
                "version": 1,
                "clusters": {alias: {"bootstrap.servers": address} for alias, address in servers.items()},
                "ledger": flow.topology.ledger,
                "flows": {
                    flow.flow.name: {
                        "topics": list(flow.flow.topics),
                        "groups": list(flow.flow.groups),
                        "sync.group.offsets.enabled": True,
                        "checkpoints.topic.replication.factor": 1,
                        "lanes": 2,
                        **NO_HEARTBEATS,
                    }
                },
            }
        )
    )
    return file


def said(capsys: pytest.CaptureFixture[str], file: Path, *arguments: str) -> dict[str, Any]:
    assert cli.main(["--topology", str(file), "--json", *arguments]) in (0, 3)
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_the_verbs_say_where_groups_go_on(
    flow: Twins, tmp_path: Path, topic: str, group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ahead = f"ahead-{group}"
    flow.create(topic)
    fill(flow.source_servers, topic, range(20))
    commit(flow.source_servers, group, topic, {0: 5})
    commit(flow.source_servers, ahead, topic, {0: 30})
    flow.mirror()
    file, name = topology_file(flow, tmp_path), flow.flow.name

    written = said(capsys, file, "checkpoint", name)
    status = said(capsys, file, "status", "--groups")["flows"][0]
    counted = said(capsys, file, "status")["flows"][0]
    plan = said(capsys, file, "translate", name, "--group", group)
    assert cli.main(["--topology", str(file), "status", "--offsets"]) == 0
    shown = capsys.readouterr().out
    file = topology_file(flow, tmp_path, source_servers=closed_port())
    alone = said(capsys, file, "status", "--groups")["flows"][0]
    plan_alone = said(capsys, file, "translate", name, "--group", group)

    assert (written["skipped"], written["notes"]) == (None, [])
    assert (written["groups_ready"], written["groups_not_ready"], written["commits"]) == (2, 0, 2)
    assert [(row["group"], row["reason"], row["behind"]) for row in written["left_out"]] == [(ahead, Reason.AHEAD, 10)]
    for row in (status, counted, alone):
        assert (row["groups_ready"], row["groups_not_ready"]) == (2, 0)
    assert [(row["group"], row["ready"], row["unread"], row["reasons"]) for row in status["groups"]] == [
        (ahead, True, 0, [Reason.AHEAD]),
        (group, True, 15, []),
    ]
    assert [[(one["target_topic"], one["target_offset"]) for one in row["offsets"]] for row in status["groups"]] == [
        [(flow.twin(topic), 20)],
        [(flow.twin(topic), 5)],
    ]
    assert f"{flow.twin(topic)}-0@5" in shown
    assert alone["groups"] == status["groups"]
    assert counted["groups"] == []
    expected = {"group": group, "topic": flow.twin(topic), "partition": 0, "offset": 5, "how": "copied", "unread": 15}
    for answer in (plan, plan_alone):
        assert [{key: row[key] for key in expected} for row in answer["plan"]] == [expected]
        assert answer["left_out"] == []
    assert (plan["lost_records"], plan_alone["lost_records"]) == (0, None)


def test_a_storage_that_fails_is_a_problem_of_the_flow_and_hides_nothing_of_it(
    flow: Twins, tmp_path: Path, topic: str, group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flow.create(topic)
    fill(flow.source_servers, topic, range(20))
    commit(flow.source_servers, group, topic, {0: 5})
    flow.mirror()
    file = topology_file(flow, tmp_path)
    checkpoint(flow)
    tables = Path(flow.topology.ledger) / "_readiness"
    (table,) = tables.rglob("readiness-*.parquet")
    table.unlink()
    table.mkdir()
    (table.with_name("readiness-999999999999999.parquet")).write_text("no Parquet")

    code = cli.main(["--topology", str(file), "--json", "status"])
    said = capsys.readouterr()
    fresh_code = cli.main(["--topology", str(file), "--json", "status", "--groups"])
    fresh = json.loads(capsys.readouterr().out)["flows"][0]

    (row,) = json.loads(said.out)["flows"]
    assert code == 1
    assert "how ready groups were can't be read" in row["problem"]
    assert row["problem"] in said.err
    assert (row["lag_records"], row["groups_ready"]) == (0, None)
    assert (fresh_code, fresh["groups_ready"]) == (0, 1)


def test_a_run_ends_with_checkpoints_as_often_as_the_flow_says(flow: Twins, topic: str, group: str) -> None:
    flow.create(topic)
    fill(flow.source_servers, topic, range(20))
    commit(flow.source_servers, group, topic, {0: 5})
    flow = flow.with_settings(emit_checkpoints_enabled=True, sync_group_offsets_enabled=True)

    first = flow.mirror()
    seen_ms = ReadinessTables(flow.ledger).last_ms()
    commit(flow.source_servers, group, topic, {0: 7})
    flow.mirror()
    early = committed(flow.target_servers, group, flow.twin(topic))
    flow.with_settings(sync_group_offsets_interval_seconds=0).mirror()

    assert first.failures == []
    assert seen_ms is not None
    assert early == {0: 5}
    assert committed(flow.target_servers, group, flow.twin(topic)) == {0: 7}


def test_nothing_is_written_where_the_target_leads_or_nothing_was_mirrored(flow: Twins, topic: str, group: str) -> None:
    flow.create(topic)
    fill(flow.source_servers, topic, range(20))
    commit(flow.source_servers, group, topic, {0: 5})
    early = checkpoint(flow)
    flow.mirror()
    with flow.ends().target.raw() as target:
        store = flow_store(flow.flow, target)
        target.run(store.change(lambda record: replace(record, state=State.FAILED_OVER)))

    late = checkpoint(flow)

    assert "has never run" in str(early.skipped)
    assert "failed over" in str(late.skipped)
    assert committed(flow.target_servers, group, flow.twin(topic)) == {}


def test_a_group_of_a_name_that_is_mirrored_both_ways_skips_nothing(
    kafka_pair: KafkaClusters, tmp_path: Path, mark: str, topic: str, group: str
) -> None:
    nyc, lon = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    there, back = both_ways(
        twins(
            nyc,
            lon,
            tmp_path,
            (topic,),
            groups=(f".*-{mark}",),
            naming="identity",
            checkpoints_topic_replication_factor=1,
        )
    )
    for servers in (nyc, lon):
        create_topic(servers, topic, 1, {})
    fill(nyc, topic, [f"nyc {number}" for number in range(10)])
    fill(lon, topic, [f"lon {number}" for number in range(10)])
    for one in (there, back, there):
        assert one.mirror().failures == []
    first = read(nyc, group, topic, 14)

    result = checkpoint(there)
    # By the ledgers alone, as where the source is gone.
    translate = translator_of(there.topology, there.flow, there.ends().target, there.ledger, topic)
    alone = translate.forward(TopicPartition(topic, 0), 14)
    rest = read(lon, group, topic)

    everything = Counter((0, f"{name} {number}".encode()) for name in ("nyc", "lon") for number in range(10))
    (row,) = result.standings.rows
    assert set(first + rest) == set(everything)
    assert row.read_again == (first + rest).total() - everything.total()
    assert row.read_again > 0
    assert (alone.offset, alone.read_again) == (row.offset, row.read_again)


def test_a_group_that_may_not_be_written_is_named_and_the_others_go_on(
    guarded: KafkaClusters, tmp_path: Path, mark: str, topic: str, group: str
) -> None:
    nyc, lon = (guarded[name].bootstrap_servers for name in ("nyc", "lon"))
    flow = twins(nyc, lon, tmp_path, (topic,), groups=(f".*-{mark}",), checkpoints_topic_replication_factor=1)
    flow.create(topic)
    fill(nyc, topic, range(20))
    flow.mirror()
    for name in (group, f"closed-{mark}"):
        commit(nyc, name, topic, {0: 5})
    source, target = Hand(nyc), Hand(lon)
    allow_copying(flow, topic, source, target)
    source.allow(MIRROR, "DESCRIBE", group, kind="GROUP")
    target.allow(MIRROR, "READ", group, kind="GROUP")
    for operation in ("READ", "WRITE", "CREATE", "DESCRIBE"):
        target.allow(MIRROR, operation, checkpoints_topic(flow.flow))

    with source.allowing(MIRROR, "DESCRIBE", "kafka-cluster", kind="BROKER"):
        result = checkpoint(as_mirror(flow, guarded))

    assert committed(lon, group, flow.twin(topic)) == {0: 5}
    assert result.standings.groups == {group: True, f"closed-{mark}": False}
    closed = f"{flow.flow.name}: group closed-{mark}: not authorised on the source"
    assert result.failures == [f"{closed}; grant Read on the group, and on its topics"]
