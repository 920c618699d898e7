"""A failover that begins by itself: only where it is switched on, and every probe has agreed for long enough."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.groups import checkpoint, commit, committed
from support.mirroring import Twins
from support.silent import closed_port
from support.source_logs import fill
from support.takeovers import failing_over
from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.secrets import resolve
from twinlog.errors import ConfigurationError
from twinlog.model.automatic_failover import Vote
from twinlog.model.flow_state import State
from twinlog.operations.automatic_failover import AutomaticFailover
from twinlog.operations.source_probes import SourceProbes

ON = {
    "failover_automatic": True,
    "failover_automatic_after_seconds": 2,
    "failover_probe_seconds": 1,
    "failover_probe_heartbeat_seconds": 1,
}


def watching(flow: Twins, servers: str, said: list[str], **settings: Any) -> AutomaticFailover:
    asked = flow.with_settings(**{**ON, **settings})
    source = ClusterAccess(flow.flow.source, resolve({"bootstrap.servers": servers}, environ={}))
    return AutomaticFailover(asked.flow, source, flow.ends().target, failing_over(asked, servers), said.append)


def test_every_probe_must_agree_for_a_set_time(flow: Twins, tmp_path: Path, topic: str, group: str) -> None:
    flow.create(topic)
    fill(flow.source_servers, topic, range(10))
    commit(flow.source_servers, group, topic, {0: 4})
    flow.mirror()
    checkpoint(flow, sync_group_offsets_enabled=False)
    verdict = tmp_path / "verdict"
    verdict.write_text("0")
    look = f"{sys.executable} -c 'import pathlib, sys; sys.exit(int(pathlib.Path(\"{verdict}\").read_text()))'"
    said: list[str] = []

    assert watching(flow, closed_port(), said, failover_probe_command=look).watch(for_s=4.0) is None
    verdict.write_text("7")
    assert watching(flow, closed_port(), said, failover_probe_command=look).watch(for_s=4.0) is None
    verdict.write_text("1")
    assert watching(flow, flow.source_servers, said, failover_probe_command=look).watch(for_s=4.0) is None
    assert flow.record().state is State.ACTIVE

    started = time.monotonic()
    result = watching(flow, closed_port(), said, failover_probe_command=look).watch(for_s=1.0)

    assert time.monotonic() - started >= 2.0
    assert result is not None
    assert (result.failures, flow.record().state) == ((), State.FAILED_OVER)
    assert committed(flow.target_servers, group, flow.twin(topic)) == {0: 4}
    assert said[-1] == (
        f"{flow.flow.name}: the source is, by brokers: gone, by command: gone for 2 s: failing over to "
        f"{flow.flow.target}"
    )
    assert watching(flow, closed_port(), said, failover_probe_command=look).watch() is None
    assert said[-1] == f"{flow.flow.name} is failed over, so there is nothing to watch over"


class CutError(Exception):
    """The process is gone."""


def test_a_watch_goes_on_with_a_failover_that_was_cut_short(
    flow: Twins, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow.create(topic)
    fill(flow.source_servers, topic, range(10))
    commit(flow.source_servers, group, topic, {0: 4})
    flow.mirror()
    checkpoint(flow, sync_group_offsets_enabled=False)

    def cut(*_: object) -> None:
        raise CutError

    gone = f"{sys.executable} -c 'import sys; sys.exit(1)'"
    with monkeypatch.context() as patched:
        patched.setattr("twinlog.operations.takeover_steps.GroupMoving.move", cut)
        with pytest.raises(CutError):
            watching(flow, closed_port(), [], failover_probe_command=gone).watch()
    assert flow.record().state is State.FAILED_OVER
    begun = failing_over(flow).unfinished()
    assert begun is not None

    # Of a flow that stands still, its heartbeats say nothing; and the source may be back by now.
    beating = {"emit_heartbeats_enabled": True, "heartbeats_replication_enabled": True}
    said: list[str] = []
    result = watching(flow, flow.source_servers, said, **beating).watch()

    assert result is not None
    assert result.plan.id == begun.id
    assert said[-1].endswith(f"the failover by the plan {begun.id} was cut short; it goes on")
    assert committed(flow.target_servers, group, flow.twin(topic)) == {0: 4}
    assert failing_over(flow).unfinished() is None


def test_it_is_off_by_default_and_one_probe_is_not_enough(flow: Twins) -> None:
    with pytest.raises(ConfigurationError, match="does not fail over by itself"):
        watching(flow, closed_port(), [], failover_automatic=False)
    with pytest.raises(ConfigurationError, match="needs 2 independent probes, and there is only brokers"):
        watching(flow, closed_port(), [])


def test_an_old_heartbeat_is_a_vote_and_none_is_not(flow: Twins, topic: str) -> None:
    flow.create(topic)
    beating = flow.with_settings(
        **{**ON, "emit_heartbeats_enabled": True, "heartbeats_replication_enabled": True},
        heartbeats_topic_replication_factor=1,
    )
    probes = SourceProbes(beating.flow, flow.ends().source, flow.ends().target)
    assert probes.ask() == {"brokers": Vote.ALIVE, "heartbeat": Vote.UNKNOWN}
    beating.mirror()
    beating.mirror()
    old = beating.with_settings(failover_probe_heartbeat_seconds=3600)
    assert SourceProbes(old.flow, flow.ends().source, flow.ends().target).ask()["heartbeat"] is Vote.ALIVE
    time.sleep(1.1)
    assert probes.ask() == {"brokers": Vote.ALIVE, "heartbeat": Vote.GONE}
    # A mirror that stands still by itself says nothing of the source.
    flow.change_record(lambda record: record.moved_to(State.PAUSED, flow.flow.name))
    assert probes.ask()["heartbeat"] is Vote.UNKNOWN
