"""What may happen around a failover: writers that come back from the dead, and failovers that are cut short."""

from __future__ import annotations

import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from local.kafka import KafkaClusters
from support.crashing import ChildRun, Job
from support.crashing import Step as Strike
from support.groups import checkpoint, commit, committed, read
from support.ledger_check import log_ends
from support.mirroring import Twins
from support.reading import read_committed
from support.source_logs import fill
from support.takeovers import fail_over, failing_over, same_names
from twinlog.cluster.copier import Outcome
from twinlog.errors import FlowStateError
from twinlog.model.flow_state import State
from twinlog.model.takeover import Request
from twinlog.model.takeover_progress import Step
from twinlog.operations.takeover_steps import CarryingOut

WITHOUT_COMMITS = {"sync_group_offsets_enabled": False}


@pytest.fixture
def promoted(kafka_pair: KafkaClusters, tmp_path: Path, mark: str) -> Twins:
    """A flow whose topics are promoted."""
    return same_names(kafka_pair, tmp_path, mark, transaction_bytes=2_000)


def ready(flow: Twins, topic: str, group: str) -> None:
    """Mirrored and checkpointed; the group has read 10 of 40 records."""
    flow.create(topic)
    fill(flow.source_servers, topic, range(40))
    commit(flow.source_servers, group, topic, {0: 10})
    assert flow.mirror().failures == []
    checkpoint(flow, **WITHOUT_COMMITS)


@pytest.mark.parametrize("strike", [Strike.BEFORE_PRODUCE, Strike.AFTER_PRODUCE, Strike.BEFORE_COMMIT])
def test_a_writer_that_comes_back_writes_nothing_into_a_promoted_topic(
    promoted: Twins, topic: str, group: str, strike: Strike
) -> None:
    flow = promoted
    ready(flow, topic, group)
    fill(flow.source_servers, topic, [f"{number} ".ljust(200, ".") for number in range(200)], batch_num_messages=5)

    with ChildRun(Job(flow, "zombie", strike, nth=2, signal=signal.SIGSTOP)) as zombie:
        zombie.await_stopped()
        result = fail_over(flow)
        fill(flow.target_servers, topic, ["written here"])
        before = log_ends(flow.target_servers, topic)
        seen = [record.value for record in read_committed(flow.target_servers, topic)[0]]
        zombie.resume()
        answer = zombie.result()

    assert result.failures == ()
    assert {lane["outcome"] for lane in answer["lanes"]} <= {Outcome.FENCED, Outcome.STOPPED, Outcome.DONE}
    assert log_ends(flow.target_servers, topic) == before
    assert [record.value for record in read_committed(flow.target_servers, topic)[0]] == seen
    assert seen[-1] == b"written here"
    assert flow.record().state is State.FAILED_OVER
    # What the dead writer had committed is in the ledger by now, and the group goes on in it without a gap.
    wanted = Counter((0, value) for value in seen[10:])
    assert read(flow.target_servers, group, topic) == wanted


class CutError(Exception):
    """The process is gone."""


@pytest.mark.parametrize("step", list(Step))
@pytest.mark.parametrize("remembered", [True, False], ids=["noted", "not noted"])
def test_a_failover_that_was_cut_short_goes_on(  # noqa: PLR0917 - fixtures and where it is cut
    flow: Twins, topic: str, group: str, step: Step, remembered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready(flow, topic, group)
    note = CarryingOut._remember

    def cut(carrying: CarryingOut, done: Step) -> None:
        if done is not step or remembered:
            note(carrying, done)
        if done is step:
            raise CutError

    failover = failing_over(flow)
    plan = failover.plan(Request())
    with monkeypatch.context() as patched:
        patched.setattr(CarryingOut, "_remember", cut)
        with pytest.raises(CutError):
            failover.apply(plan)

    begun = failover.unfinished()
    ended = step is Step.ANNOUNCE and remembered
    assert begun == (None if ended else plan)
    result = failing_over(flow).apply(plan)

    assert (result.failures, result.moved.left_out) == ((), ())
    taken = {done.step for done in result.steps}
    assert taken >= {later for later in Step if later > step}
    assert failover.unfinished() is None
    assert committed(flow.target_servers, group, flow.twin(topic)) == {0: 10}
    # Once more: it was done, and the group has gone on by itself since.
    assert read(flow.target_servers, group, flow.twin(topic), 5).total() == 5
    assert fail_over(flow).moved.committed == 0
    assert committed(flow.target_servers, group, flow.twin(topic)) == {0: 15}


def test_what_is_refused_is_gone_on_with_and_not_passed_over(
    flow: Twins, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready(flow, topic, group)
    failover = failing_over(flow)
    plan = failover.plan(Request())

    async def refuses(*_: object) -> list[str]:
        return ["cluster lon does not allow it"]

    with monkeypatch.context() as patched:
        patched.setattr("twinlog.operations.takeover_steps.promote", refuses)
        refused = failover.apply(plan)

    assert (refused.exit_code, refused.failures) == (1, ("cluster lon does not allow it",))
    assert [done.step for done in refused.steps] == list(Step), "all else is done"
    assert failover.unfinished() == plan
    result = failover.apply(plan)
    assert result.failures == ()
    assert {done.step for done in result.steps} == {Step.STOP, Step.RECORD, Step.PROMOTE, Step.ANNOUNCE}
    assert failover.unfinished() is None


def test_a_plan_that_was_carried_out_before_is_of_another_time_once_the_flow_is_home(
    flow: Twins, topic: str, group: str
) -> None:
    ready(flow, topic, group)
    result = fail_over(flow)
    flow.change_record(lambda found: found.moved_to(State.FAILING_BACK, flow.flow.name))
    flow.change_record(lambda found: found.moved_to(State.ACTIVE, flow.flow.name))

    with pytest.raises(FlowStateError, match="was carried out before, and the flow is active again; make one anew"):
        failing_over(flow).apply(result.plan)
    assert flow.record().state is State.ACTIVE


def test_people_take_their_time_with_a_plan_and_groups_go_on_reading(flow: Twins, topic: str, group: str) -> None:
    """The group reads what was mirrored long ago, so the ledger has no row more than when the plan was made."""
    ready(flow, topic, group)
    failover = failing_over(flow)
    plan = failover.plan(Request())
    commit(flow.source_servers, group, topic, {0: 25})
    checkpoint(flow, **WITHOUT_COMMITS)

    result = failover.apply(replace(plan, made_at_ms=plan.made_at_ms - 120_000))

    assert result.plan.id == plan.id
    assert committed(flow.target_servers, group, flow.twin(topic)) == {0: 25}


def test_a_transaction_that_is_open_holds_no_plan_up_and_is_settled_by_the_failover(
    flow: Twins, topic: str, group: str
) -> None:
    ready(flow, topic, group)
    fill(flow.source_servers, topic, range(40, 80))
    with ChildRun(Job(flow, "dead", Strike.BEFORE_COMMIT, signal=signal.SIGSTOP)) as dead:
        dead.await_stopped()
        failover = failing_over(flow)
        plan = failover.plan(Request())
        result = failover.apply(plan)

    assert plan.provisional is not None
    assert result.plan.provisional is None
    assert result.plan.id == plan.id
    assert read(flow.target_servers, group, flow.twin(topic)).total() == 30
