"""`twinlog migrate` as people and scripts run it, from the first record to the clean-up, on a Spark Connect server."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from support.groups import commit, committed
from support.mirroring import Twins
from support.source_logs import fill
from support.syncing import Hand
from support.takeovers import topology_file
from twinlog import cli

QUIET = {
    "emit.heartbeats.enabled": False,
    "heartbeats.replication.enabled": False,
    "emit.checkpoints.enabled": False,
    "emit.offset-syncs.enabled": False,
    "canary.enabled": False,
    "replication.factor": 1,
}


@pytest.fixture
def file(flow: Twins, topic: str, tmp_path: Path, spark_connect: str) -> Path:
    flow = flow.with_settings(groups=(f"{topic}.*",), naming="identity")
    return topology_file(flow, tmp_path, spark=spark_connect, **QUIET)


def run(file: Path, *arguments: str) -> int:
    return cli.main(["--topology", str(file), *arguments])


def test_a_cluster_is_moved_by_the_command(
    flow: Twins, topic: str, file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, group, target = flow.flow.name, f"{topic}.readers", Hand(flow.target_servers)
    flow.create(topic, 2)
    for partition in range(2):
        fill(flow.source_servers, topic, range(50), partition)
    commit(flow.source_servers, group, topic, {0: 7})

    def answered(*arguments: str, code: int = 0) -> Any:
        assert run(file, "--json", "migrate", name, *arguments) == code
        return json.loads(capsys.readouterr().out)

    looked = answered("--dry-run")
    assert (looked["phase"], looked["dry_run"]) == ("settings", True)
    assert topic not in target.topics()
    for wrong in (("--blackout", "noon"), ("--priority", "("), ("--from-offset", "orders")):
        assert run(file, "migrate", name, *wrong) == 2
    assert run(file, "migrate", name, "--clean-up", "--yes") == 1
    assert "is not being migrated" in capsys.readouterr().err

    began = answered("--throttle", "50", "--priority", ".*", "--blackout", "sun 03:00-sun 03:01")
    assert (began["phase"], began["records"], began["failures"]) == ("cut-over plan", 100, [])
    assert began["done"] == ["settings", "backfill", "live", "proof"]
    assert "waits for somebody to approve it" in began["waits_for"]
    assert committed(flow.target_servers, group, topic) == {}

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal("no\n"))
    assert run(file, "migrate", name) == 0
    shown = capsys.readouterr()
    assert f"Cut {name} over to {flow.flow.target}? Type yes to go ahead:" in shown.err
    assert "waits for somebody to approve it" in shown.out
    monkeypatch.setattr("sys.stdin", Terminal("yes\n"))
    assert run(file, "migrate", name) == 0
    assert "done: switchover" in capsys.readouterr().out
    assert committed(flow.target_servers, group, topic) == {0: 7}

    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert run(file, "migrate", name, "--clean-up") == 2
    assert "Nobody can be asked here" in capsys.readouterr().err
    cleaned = answered("--clean-up", "--yes")
    assert cleaned["done"] == ["clean-up"]
    assert any(line.endswith(".journal.internal") for line in cleaned["removed"])
    assert not [one for one in target.topics() if flow.flow.source in one]
    assert Path(cleaned["report"].removeprefix("file://")).is_file()
    for verb in ("mirror", "sync"):
        assert run(file, verb, name) == 1
        assert "was migrated and cleaned up" in capsys.readouterr().err
