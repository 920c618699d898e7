"""A flow's state is kept on the target, and everything that writes asks for it first."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from local.kafka import KafkaClusters
from support.mirroring import Twins, twins
from support.reading import read_committed
from support.source_logs import fill
from support.waiting import await_condition
from twinlog.cluster.copy_order import carry_out_here
from twinlog.errors import FlowStateError
from twinlog.model.flow_state import Lease, State
from twinlog.operations.canary import Canary
from twinlog.operations.checkpoint import Checkpointing
from twinlog.operations.control import Action, ControlResult, control
from twinlog.operations.heartbeat import emit_heartbeat
from twinlog.operations.ledger_upkeep import keep_up
from twinlog.operations.mirror_result import MirrorResult
from twinlog.operations.sync import Sync


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    source, target = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    flow = twins(
        source,
        target,
        tmp_path,
        (topic,),
        transaction_seconds=1,
        emit_heartbeats_enabled=True,
        heartbeats_topic_replication_factor=1,
        canary_topic_replication_factor=1,
    )
    flow.create(topic, partitions=2)
    for partition in range(2):
        fill(source, topic, [f"{number} ".ljust(1_000, ".") for number in range(500)], partition, batch_num_messages=10)
    return flow


def ask(flow: Twins, action: Action, timeout_s: float = 60.0) -> ControlResult:
    return control(flow.flow, flow.ends().target, action, timeout_s=timeout_s)


def while_it_runs(flow: Twins, topic: str, act: Callable[[], ControlResult]) -> tuple[MirrorResult, ControlResult]:
    """Do something once a slow run has committed its first records."""
    slow = flow.with_settings(throttle=0.05)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: slow.mirror(tasks=1))
        await_condition(lambda: running.done() or _committed(flow, topic), "a commit", 60)
        answer = act()
        return running.result(), answer


def _committed(flow: Twins, topic: str) -> bool:
    with flow.ends().target.raw() as target:
        if target.run(target.metadata([flow.twin(topic)])).topics[flow.twin(topic)].is_missing:
            return False
    return any(read_committed(flow.target_servers, flow.twin(topic)).values())


def test_a_drained_flow_has_committed_and_ended_when_it_is_said_to_have(flow: Twins, topic: str) -> None:
    result, drained = while_it_runs(flow, topic, lambda: ask(flow, Action.DRAIN))
    copied = sum(map(len, flow.read_target(topic).values()))
    assert (drained.before, drained.state, drained.run) == (State.ACTIVE, State.PAUSED, result.run)
    assert flow.record().lease is None
    assert 0 < result.recorded.records == copied < 1_000
    assert {lane.reason for lane in result.lanes} == {f"{flow.flow.name} is paused"}
    assert result.failures == []

    assert ask(flow, Action.RESUME).state is State.ACTIVE
    assert flow.mirror().failures == []
    assert flow.read_target(topic) == flow.read_source(topic)


def test_a_paused_flow_stays_paused_until_it_is_resumed(flow: Twins) -> None:
    name = flow.flow.name
    first = ask(flow, Action.PAUSE)
    again = ask(flow, Action.PAUSE)
    assert (first.before, first.state, again.before) == (State.ACTIVE, State.PAUSED, State.PAUSED)
    # Before its first run, too.
    assert flow.look().sentence == f"{name} is paused; nothing was copied"
    assert flow.mirror().skipped == f"{name} is paused; nothing was copied"
    ask(flow, Action.RESUME)
    assert flow.mirror().failures == []
    assert ask(flow, Action.DRAIN).sentence.startswith(f"{name} is paused and drained in ")


def test_draining_waits_for_a_run_that_was_killed_no_longer_than_its_lease(flow: Twins) -> None:
    flow.mirror()
    lease = Lease("killed", "a-host", int(time.time() * 1000) + 3_000)
    flow.change_record(lambda record: replace(record, lease=lease))
    drained = ask(flow, Action.DRAIN)
    assert drained.run == "killed"
    assert 1.0 < drained.seconds < 30.0
    assert flow.record().lease is None


def test_draining_gives_up_in_a_sentence_and_the_flow_stays_paused(flow: Twins) -> None:
    flow.mirror()
    lease = Lease("hung", "a-host", int(time.time() * 1000) + 60_000)
    flow.change_record(lambda record: replace(record, lease=lease))
    with pytest.raises(FlowStateError, match="is paused, and run hung of a-host has not ended yet"):
        ask(flow, Action.DRAIN, timeout_s=1.0)
    assert flow.record().state is State.PAUSED


def test_everything_that_writes_asks_for_the_state_first(flow: Twins, topic: str) -> None:
    name = flow.flow.name
    flow.mirror()
    ends = flow.ends()
    sync = Sync(flow.topology, flow.flow, ends.source, ends.target)
    checkpointing = Checkpointing(flow.topology, flow.flow, ends.source, ends.target, flow.ledger)
    canary = Canary(flow.flow, flow.steps(), ends.source, ends.target)

    ask(flow, Action.PAUSE)
    flow.create(f"{topic}-2")
    assert flow.mirror().skipped == f"{name} is paused; nothing was copied"
    assert flow.steps().copy(carry_out_here, tasks=1, run="r").skipped == f"{name} is paused; nothing was copied"
    assert sync.run().skipped == f"{name} is paused, so its topics on {flow.flow.target} are left as they are"
    assert sync.run(dry_run=True).skipped is None
    assert canary.fly(carry_out_here, tasks=1).skipped == f"{name} is paused, so no canary is written"
    # Groups keep what they have, and the source is told apart from a dead one.
    assert checkpointing.run().skipped is None
    assert emit_heartbeat(flow.flow, ends.source, ends.target).skipped is None

    for state in (State.FAILED_OVER, State.FAILING_BACK):
        flow.change_record(lambda record, state=state: record.moved_to(state, name))
        assert flow.look().refused == f"{name} is {state}; nothing was copied"
        assert flow.mirror().skipped == f"{name} is {state}; nothing was copied"
        left = f"{name} is {state}, so its topics on {flow.flow.target} are left as they are"
        assert (sync.run().skipped, sync.run(dry_run=True).skipped) == (left, left)
        assert canary.fly(carry_out_here, tasks=1).skipped == f"{name} is {state}, so no canary is written"
        groups = f"{name} is {state}: its groups go on by themselves on {flow.flow.target}"
        assert checkpointing.run().skipped == groups
        beat = emit_heartbeat(flow.flow, ends.source, ends.target)
        assert beat.skipped == f"{name} is {state}, so no heartbeat is written to {flow.flow.source}"
        kept = keep_up(flow.flow, ends.source, ends.target, flow.ledger, keep_days=0, everything=True)
        assert kept.notes == (f"{name} is {state}, so nothing was dropped of what it mirrored",)
        for action in Action:
            with pytest.raises(FlowStateError, match=f"{name} is {state}, so it can neither be paused nor resumed"):
                ask(flow, action)


def test_a_site_that_describes_the_flow_otherwise_says_so_and_leaves_it_alone(flow: Twins, topic: str) -> None:
    home = replace(flow, topology=replace(flow.topology, site="home"))
    twin = replace(flow, topology=replace(flow.topology, site="elsewhere"))
    assert home.mirror().skipped is None
    assert twin.mirror().skipped is None, "equal descriptions hold for everybody"

    other = twin.with_settings(topics=(".*",))
    refused = other.mirror().skipped
    assert refused is not None
    assert refused.startswith(
        f"{flow.flow.name} runs by version 0 of the topology, as site home has it; site elsewhere"
    )
    assert refused.endswith("; nothing was copied")
    assert other.look().refused == refused
    ends = other.ends()
    assert "left as they are" in str(Sync(other.topology, other.flow, ends.source, ends.target).run().skipped)
    checkpointing = Checkpointing(other.topology, other.flow, ends.source, ends.target, other.ledger)
    assert "describes the flow otherwise" in str(checkpointing.run().skipped)
    assert "describes the flow otherwise" in str(
        Canary(other.flow, other.steps(), ends.source, ends.target).fly(carry_out_here, tasks=1).skipped
    )

    # The site that gave the description may change it, and a higher version may come from anywhere.
    edited = home.with_settings(lanes=3)
    assert edited.look().reasons == ("its description in the topology has changed",)
    assert edited.mirror().skipped is None
    raised = replace(other, topology=replace(other.topology, version=1)).with_settings(topics=(topic,), lanes=2)
    assert raised.mirror().skipped is None
    late = edited.mirror().skipped
    assert late is not None
    assert "as site elsewhere has it; site home has version 0 and describes the flow otherwise" in late
