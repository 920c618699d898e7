"""The target takes over while the source is alive: nothing lost, nothing read again, order kept."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest

from local.kafka import KafkaClusters
from support.groups import commit, committed, read
from support.mirroring import Twins, producer
from support.reading import read_committed
from support.source_logs import fill
from support.syncing import Hand, both_ways
from support.takeovers import by_reconciliation, same_names, switch, switching
from twinlog.cluster.copy_order import carry_out_here
from twinlog.errors import ClusterUnreachableError, FlowStateError
from twinlog.model.flow_state import State
from twinlog.model.takeover import Request, TakeoverPlan
from twinlog.operations.control import Action, control
from twinlog.operations.run_scope import Ends
from twinlog.operations.switchover import Proof, Switchover
from twinlog.operations.takeover_result import TakeoverResult


def that_they_differ() -> Proof:
    return Proof(False, "3 offsets differ")


class Writer:
    """A producer that is moved under load: it writes numbers to one partition, first here, then there."""

    def __init__(self, servers: str, topic: str) -> None:
        self.written = 0
        self._topic = topic
        self._over = threading.Event()
        self._begin(servers)

    def _begin(self, servers: str) -> None:
        self._over.clear()
        self._thread = threading.Thread(target=self._write, args=(servers,))
        self._thread.start()

    def _write(self, servers: str) -> None:
        writer = producer(servers, acks="all", enable_idempotence=True)
        while not self._over.wait(0.002):
            writer.produce(self._topic, str(self.written), partition=0)
            self.written += 1
        assert writer.flush(30) == 0

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def move(self, servers: str) -> None:
        self._begin(servers)


def test_producers_and_consumers_move_under_load_and_back_again(
    kafka_pair: KafkaClusters, tmp_path: Path, mark: str, topic: str, group: str
) -> None:
    onward, back = both_ways(same_names(kafka_pair, tmp_path, mark))
    onward.create(topic)
    writer = Writer(onward.source_servers, topic)
    try:
        onward.mirror()
        seen = read(onward.source_servers, group, topic, 100)
        switchover = switching(onward, back=back)
        plan = switchover.plan(Request())
        # Producers stop, everything is switched, producers go on: the order that one form leads people through.
        writer.stop()
        there = switchover.apply(plan, carry_out_here, by_reconciliation(onward))
        writer.move(onward.target_servers)
        back.mirror()
        seen += read(onward.target_servers, group, topic, 100)
        writer.stop()
        home = switch(back, back=onward)
        writer.move(back.target_servers)
    finally:
        writer.stop()
    seen += read(onward.source_servers, group, topic)

    assert there.proof is not None
    assert there.proof.startswith(f"{onward.flow.name}: equal: ")
    assert (there.exit_code, there.takeover.plan.lost_records) == (0, 0)
    assert there.reverse == f"{back.flow.name} is active"
    assert home.reverse == f"{onward.flow.name} was failed over and is active"
    assert (onward.record().state, back.record().state) == (State.ACTIVE, State.FAILED_OVER)
    numbers = [str(number).encode() for number in range(writer.written)]
    assert [record.value for record in read_committed(onward.source_servers, topic)[0]] == numbers
    assert seen == Counter((0, number) for number in numbers)
    # What came home while lon led is not sent there again.
    assert onward.mirror().failures == []
    assert [record.value for record in read_committed(onward.target_servers, topic)[0]] == numbers


def test_a_source_that_goes_on_being_written_to_is_not_switched(
    kafka_pair: KafkaClusters, tmp_path: Path, mark: str, topic: str, group: str
) -> None:
    flow = same_names(kafka_pair, tmp_path, mark)
    flow.create(topic)
    fill(flow.source_servers, topic, range(10))
    commit(flow.source_servers, group, topic, {0: 4})
    flow.mirror()
    plan = switching(flow).plan(Request())

    with pytest.raises(FlowStateError, match="not switched over: 3 offsets differ"):
        switching(flow).apply(plan, carry_out_here, that_they_differ)
    assert flow.record().state is State.ACTIVE
    assert committed(flow.target_servers, group, topic) == {}

    writer = Writer(flow.source_servers, topic)
    try:
        with pytest.raises(FlowStateError, match=r"not switched over: .* is somebody writing"):
            switching(flow, within_s=2.0).apply(plan, carry_out_here, by_reconciliation(flow))
    finally:
        writer.stop()
    assert flow.record().state is State.ACTIVE

    # A person's pause stays a pause where nothing comes of it.
    control(flow.flow, flow.ends().target, Action.PAUSE)
    with pytest.raises(FlowStateError, match="differ"):
        switching(flow).apply(plan, carry_out_here, that_they_differ)
    assert flow.record().state is State.PAUSED
    assert switch(flow).takeover.moved.groups == 1
    assert committed(flow.target_servers, group, topic) == {0: 4}


def test_whatever_ends_it_before_groups_move_leaves_the_flow_as_it_was(
    kafka_pair: KafkaClusters, tmp_path: Path, mark: str, topic: str
) -> None:
    flow = same_names(kafka_pair, tmp_path, mark)
    flow.create(topic)
    fill(flow.source_servers, topic, range(10))
    flow.mirror()
    plan = switching(flow).plan(Request())

    def interrupted() -> Proof:
        assert flow.record().state is State.PAUSED, "nobody of ours writes while the logs are compared"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        switching(flow).apply(plan, carry_out_here, interrupted)
    assert flow.record().state is State.ACTIVE


def test_what_comes_after_the_last_look_is_told(
    kafka_pair: KafkaClusters, tmp_path: Path, mark: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = same_names(kafka_pair, tmp_path, mark)
    flow.create(topic)
    fill(flow.source_servers, topic, range(10))
    flow.mirror()
    switchover = switching(flow)
    plan, take_over = switchover.plan(Request()), switchover.failover.apply

    def too_late(final: TakeoverPlan) -> TakeoverResult:
        fill(flow.source_servers, topic, ["somebody", "else"])
        return take_over(final)

    monkeypatch.setattr(switchover.failover, "apply", too_late)
    result = switchover.apply(plan, carry_out_here, by_reconciliation(flow))

    assert result.exit_code == 1
    assert result.late is not None
    assert result.late.startswith(f"2 records were written to {flow.flow.source} after the last look, to {topic}-0")


def test_writes_are_blocked_on_request_and_allowed_again_where_it_is_undone(
    guarded: KafkaClusters, tmp_path: Path, mark: str, topic: str
) -> None:
    flow = same_names(guarded, tmp_path, mark)
    source, target = Hand(flow.source_servers), Hand(flow.target_servers)
    source.create(topic)
    source.allow("alice", "ALL", topic)
    fill(flow.source_servers, topic, range(10))
    flow.mirror()
    denied = ("User:alice", "DENY", "WRITE", "LITERAL", topic)
    plan = switching(flow).plan(Request())

    def different() -> Proof:
        assert denied in source.acls(topic)
        return Proof(False, "they differ")

    with pytest.raises(FlowStateError, match="they differ"):
        switching(flow).apply(plan, carry_out_here, different, block_writes=True)
    assert denied not in source.acls(topic)
    assert flow.record().write_block == ()

    result = switch(flow, block_writes=True)
    assert (result.blocked, result.exit_code) == (1, 0)
    assert denied in source.acls(topic)
    assert denied not in target.acls(topic), "what is denied on the source is no wish for the target"
    assert ("User:alice", "ALLOW", "ALL", "LITERAL", topic) in target.acls(topic)


def test_a_switchover_needs_the_source(flow: Twins, topic: str) -> None:
    from support.silent import closed_port
    from twinlog.cluster.access import ClusterAccess
    from twinlog.cluster.secrets import resolve

    flow.create(topic)
    fill(flow.source_servers, topic, range(3))
    flow.mirror()
    gone = ClusterAccess(flow.flow.source, resolve({"bootstrap.servers": closed_port()}, environ={}))
    ends = flow.ends()
    reaching = Ends(gone, ends.target, gone, ends.writing)
    switchover = Switchover(flow.topology, flow.flow, reaching, flow.ledger)
    with pytest.raises(ClusterUnreachableError, match="A switchover needs the source"):
        switchover.plan(Request())
