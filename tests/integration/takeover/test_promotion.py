"""What is put back on topics that take the source's place: settings, permissions; and what is called then."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from local.kafka import KafkaClusters
from support.groups import commit, committed
from support.mirroring import Twins
from support.source_logs import fill
from support.syncing import Hand
from support.takeovers import fail_over, failing_over, same_names
from twinlog.model.sync_plan import ChangeKind
from twinlog.model.takeover import Request


def overrides(servers: str, topic: str) -> dict[str, str]:
    hand = Hand(servers)
    return hand.overrides(topic)


def test_settings_are_the_sources_again(kafka_pair: KafkaClusters, tmp_path: Path, mark: str, topic: str) -> None:
    flow = same_names(kafka_pair, tmp_path, mark)
    flow.create(topic, compression_type="zstd", message_timestamp_type="LogAppendTime", retention_ms="86400000")
    flow.create(f"plain-{mark}")
    fill(flow.source_servers, topic, range(3))
    assert flow.mirror().failures == []
    assert overrides(flow.target_servers, topic)["compression.type"] == "producer"

    plan = failing_over(flow).plan(Request())
    assert {(change.topic, change.name, change.after) for change in plan.settings} >= {
        (topic, "compression.type", "zstd"),
        (topic, "message.timestamp.type", "LogAppendTime"),
        (f"plain-{mark}", "compression.type", None),
    }
    assert plan.promoted == (topic, f"plain-{mark}")
    result = failing_over(flow).apply(plan)

    assert result.failures == ()
    assert overrides(flow.target_servers, topic) == overrides(flow.source_servers, topic)
    assert overrides(flow.target_servers, f"plain-{mark}") == {}
    assert failing_over(flow).plan(Request()).settings == ()


def test_the_plan_says_how_settings_and_permissions_differ(
    guarded: KafkaClusters, tmp_path: Path, mark: str, topic: str
) -> None:
    flow = same_names(guarded, tmp_path, mark)
    source = Hand(flow.source_servers)
    source.create(topic)
    fill(flow.source_servers, topic, range(3))
    assert flow.mirror().failures == []
    source.set(topic, retention_ms="86400000")
    source.allow("alice", "READ", topic)

    alive = failing_over(flow, flow.source_servers, source_within_s=20).plan(Request())
    gone = failing_over(flow).plan(Request())

    assert {(one.kind, one.resource, one.name, one.after) for one in alive.differences} >= {
        (ChangeKind.SET_SETTING, topic, "retention.ms", "86400000"),
    }
    assert [one.name for one in alive.differences if one.kind is ChangeKind.ADD_ACL] == ["User:alice"]
    assert failing_over(flow).kept(alive.id).differences == alive.differences
    assert gone.differences == ()
    assert sum("can't be compared" in note and "were last at" in note for note in gone.notes) == 2


def test_twins_under_other_names_stay_as_they_are(flow: Twins, topic: str) -> None:
    flow.create(topic)
    fill(flow.source_servers, topic, range(3))
    flow.mirror()
    before = overrides(flow.target_servers, flow.twin(topic))

    result = fail_over(flow)

    assert (result.plan.promoted, result.plan.settings) == ((), ())
    assert overrides(flow.target_servers, flow.twin(topic)) == before
    assert result.plan.names_changed == {topic: flow.twin(topic)}
    assert any("consumers read both names" in note for note in result.plan.notes)


def test_who_wrote_on_the_source_may_write_on_the_target_now(
    guarded: KafkaClusters, tmp_path: Path, mark: str, topic: str, group: str
) -> None:
    flow = same_names(guarded, tmp_path, mark)
    source, target = Hand(flow.source_servers), Hand(flow.target_servers)
    source.create(topic)
    for operation in ("READ", "WRITE"):
        source.allow("alice", operation, topic)
    source.allow("alice", "READ", group, kind="GROUP")
    fill(flow.source_servers, topic, range(3))
    assert flow.mirror().failures == []
    assert {words[2] for words in target.acls(mark)} == {"READ"}

    result = fail_over(flow)

    assert result.failures == ()
    writing = ("User:alice", "ALLOW", "WRITE", "LITERAL", topic)
    reading = ("User:alice", "ALLOW", "READ", "LITERAL", group)
    assert {writing, reading} <= target.acls(mark)
    assert {(acl.principal, acl.operation, acl.resource_name) for acl in result.plan.acls} == {
        ("User:alice", "WRITE", topic),
        ("User:alice", "READ", group),
    }
    assert failing_over(flow).plan(Request()).acls == ()


@contextmanager
def listener(status: int = 200) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A web server on a free port, and what was posted to it."""
    got: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_hooks_are_told_and_one_that_fails_is_called_again(
    flow: Twins, tmp_path: Path, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow.create(topic)
    fill(flow.source_servers, topic, range(3))
    commit(flow.source_servers, group, topic, {0: 1})
    flow.mirror()
    told = tmp_path / "told.json"
    script = tmp_path / "hook.py"
    script.write_text(
        "import os, pathlib, sys\n"
        f"pathlib.Path({str(told)!r}).write_text(sys.stdin.read())\n"
        "print(os.environ['TWINLOG_EVENT'], os.environ['TWINLOG_BOOTSTRAP_SERVERS'])\n"
    )
    with listener(503) as (address, _), listener() as (working, got):
        monkeypatch.setenv("HOOK_ADDRESS", address)
        calling = flow.with_settings(
            hook_command=f"{sys.executable} {script}", hook_webhook="${env:HOOK_ADDRESS}", hook_timeout_seconds=20
        )
        failed = fail_over(calling, Request(), flow.source_servers)
        assert (failed.exit_code, failed.failures) == (1, ("the webhook answered with 503",))
        assert committed(flow.target_servers, group, flow.twin(topic)) == {0: 1}, "what was done stays done"
        begun = failing_over(calling).unfinished()
        assert begun is not None
        monkeypatch.setenv("HOOK_ADDRESS", working)
        result = failing_over(calling).apply(begun)

    assert result.failures == ()
    assert [hook.output for hook in result.hooks] == [f"failed over {flow.target_servers}\n", ""]
    assert got == [json.loads(told.read_text())]
    assert (got[0]["active"], got[0]["groups"]) == (flow.flow.target, [group])
    assert got[0]["topics"] == {topic: flow.twin(topic)}


def test_kafkas_own_tool_takes_the_plan(flow: Twins, tmp_path: Path, mark: str, topic: str) -> None:
    from local.kafka.node import Java
    from local.kafka_jars import class_path
    from twinlog.model.takeover import reset_csv

    one, other = f"one-{mark}", f"other-{mark}"
    flow.create(topic, 2)
    for partition in (0, 1):
        fill(flow.source_servers, topic, range(9), partition)
    commit(flow.source_servers, one, topic, {0: 3, 1: 4})
    commit(flow.source_servers, other, topic, {1: 5})
    flow.mirror()
    plan = failing_over(flow, flow.source_servers).plan(Request())
    java = Java(Path("java"), class_path(), 128, quick_start=True)

    def reset(file: Path, *groups: str) -> None:
        command = java.run(
            "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
            "--bootstrap-server",
            flow.target_servers,
            *(word for group in groups for word in ("--group", group)),
            "--reset-offsets",
            "--execute",
            "--from-file",
            str(file),
        )
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert "error" not in (done.stdout + done.stderr).lower(), done.stdout + done.stderr

    both, alone = tmp_path / "both.csv", tmp_path / "alone.csv"
    both.write_text(reset_csv(plan.rows, with_group=True))
    alone.write_text(reset_csv([row for row in plan.rows if row.group == one], with_group=False))
    reset(both, one, other)
    assert committed(flow.target_servers, other, flow.twin(topic)) == {1: 5}
    commit(flow.target_servers, one, flow.twin(topic), {0: 0, 1: 0})
    reset(alone, one)
    assert committed(flow.target_servers, one, flow.twin(topic)) == {0: 3, 1: 4}
