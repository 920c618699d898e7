"""The verbs, as people and scripts use them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from support.groups import checkpoint, commit, committed, read
from support.mirroring import Twins
from support.silent import closed_port
from support.source_logs import fill
from support.takeovers import topology_file
from twinlog import cli
from twinlog.model.flow_state import State


@pytest.fixture
def ready(flow: Twins, topic: str, group: str) -> Twins:
    flow.create(topic, 2)
    fill(flow.source_servers, topic, range(10), 0)
    fill(flow.source_servers, topic, range(5), 1)
    commit(flow.source_servers, group, topic, {0: 4, 1: 5})
    flow.mirror()
    checkpoint(flow, sync_group_offsets_enabled=False)
    return flow


def run(file: Path, *arguments: str) -> int:
    return cli.main(["--topology", str(file), *arguments])


def test_a_plan_is_shown_kept_and_carried_out(
    ready: Twins, tmp_path: Path, topic: str, group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flow, name = ready, ready.flow.name
    file = topology_file(flow, tmp_path, closed_port())
    table = tmp_path / "reset.csv"

    assert run(file, "--json", "failover", name, "--dry-run", "--csv", str(table)) == 0
    plan: dict[str, Any] = json.loads(capsys.readouterr().out)
    twin = flow.twin(topic)
    assert table.read_text() == f"{twin},0,4\n{twin},1,5\n"
    assert [(row["group"], row["topic"], row["offset"], row["how"], row["unread"]) for row in plan["plan"]] == [
        (group, twin, 4, "copied", 6),
        (group, twin, 5, "end", 0),
    ]
    assert (plan["flow"], plan["lost_records"], plan["left_out"], plan["dry_run"]) == (name, 0, [], True)
    assert (plan["bootstrap_servers"], plan["topics"]) == (flow.target_servers, {topic: twin})

    assert run(file, "failover", name, "--dry-run") == 0
    text = capsys.readouterr().out
    assert f"clients find {flow.flow.target} at {flow.target_servers}" in text
    assert f"1. {name} is marked failed over on {flow.flow.target}" in text
    assert flow.record().state is State.ACTIVE

    assert run(file, "--json", "failover", name, "--plan", plan["id"], "--yes") == 0
    done = json.loads(capsys.readouterr().out)
    assert [step["step"] for step in done["done"]] == ["stop", "record", "groups", "promote", "announce"]
    assert (done["groups_moved"], done["offsets_committed"], done["failures"]) == (1, 2, [])
    assert committed(flow.target_servers, group, twin) == {0: 4, 1: 5}
    assert read(flow.target_servers, group, twin).total() == 6


def test_nothing_is_done_without_a_yes(
    ready: Twins, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, name = ready, ready.flow.name
    file = topology_file(flow, tmp_path, closed_port())
    for verb in ("failover", "switchover"):
        assert run(file, verb, name) == 2
        assert "Nobody can be asked here: say --yes" in capsys.readouterr().err

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal("no\n"))
    assert run(file, "failover", name) == 0
    assert "nothing was changed" in capsys.readouterr().err
    assert flow.record().state is State.ACTIVE
    monkeypatch.setattr("sys.stdin", Terminal("yes\n"))
    assert run(file, "failover", name) == 0
    assert flow.record().state is State.FAILED_OVER


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--strategy", "timestamp", "--yes"], "needs a time"),
        (["--at", "2026-01-31T12:00:00Z", "--yes"], "is for the strategy timestamp"),
        (["--group-strategy", "a=soon", "--yes"], "expected a pattern"),
        (["--groups", "(", "--yes"], "no pattern"),
        (["--watch", "--dry-run"], "takes no other options"),
        (["--watch"], "failover.automatic is false"),
        (["--plan", "nothing", "--dry-run"], None),
    ],
)
def test_wrong_use_is_told(
    flow: Twins, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str | None
) -> None:
    code = run(topology_file(flow, tmp_path, closed_port()), "failover", flow.flow.name, *arguments)
    assert code == (1 if said is None else 2)
    assert (said or "has no plan nothing") in capsys.readouterr().err


def test_a_target_that_is_gone_is_3(flow: Twins, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = topology_file(flow, tmp_path, closed_port())
    file.write_text(file.read_text().replace(flow.target_servers, closed_port()))
    assert run(file, "failover", flow.flow.name, "--dry-run") == 3
    assert f"cluster {flow.flow.target}" in capsys.readouterr().err
