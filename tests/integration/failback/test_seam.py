"""Who writes when: on the target after the seam was cut, on the source before the failback has ended, both at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from local.kafka import KafkaClusters
from support.failing_back import (
    both_ways,
    commit,
    committed,
    delete_topic,
    fail_back,
    fail_over,
    failback_of,
    new_name,
    numbered,
    plan_of,
    values_of,
    write,
)
from support.mirroring import Twins, twins
from twinlog.cluster.copy_order import carry_out_here
from twinlog.errors import FlowStateError
from twinlog.model.flow_state import State
from twinlog.operations import failback_runs
from twinlog.operations.failback_steps import FailbackSteps
from twinlog.operations.lease import held


@pytest.fixture
def topic() -> str:
    return new_name()


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    """Failed over, with three written since."""
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    made = twins(nyc, lon, tmp_path, (topic,))
    made.create(topic)
    write(nyc, topic, numbered("a", 4))
    assert made.mirror().failures == []
    fail_over(made)
    write(lon, made.twin(topic), numbered("b", 3))
    return made


def test_what_is_written_on_the_target_after_the_seam_goes_home_too(
    flow: Twins, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nyc, lon, twin, group = flow.source_servers, flow.target_servers, flow.twin(topic), new_name("billing")
    commit(lon, group, twin, 8)  # a0 to a3, a marker, b0 to b2
    groups, resume = FailbackSteps.groups, FailbackSteps.resume
    late = iter(["late0", "late1"])

    def somebody_writes(step: Any) -> Any:
        def written_before(self: FailbackSteps) -> None:
            step(self)
            if (value := next(late, None)) is not None:
                write(lon, twin, [value])

        return written_before

    def written_first(self: FailbackSteps) -> None:
        if (value := next(late, None)) is not None:
            write(lon, twin, [value])
        resume(self)

    monkeypatch.setattr(FailbackSteps, "groups", somebody_writes(groups))
    monkeypatch.setattr(FailbackSteps, "resume", written_first)
    result = fail_back(flow)
    assert [warning for warning in result.warnings if "after the last of it had gone home" in warning] != []
    assert values_of(nyc, topic) == [*numbered("a", 4), *numbered("b", 3), "late0", "late1"]
    assert values_of(lon, twin) == values_of(nyc, topic)
    assert flow.mirror().recorded.records == 0
    assert committed(nyc, group, topic) <= 8, "late0 is not skipped"


def test_producers_may_begin_on_the_source_before_the_failback_has_ended(flow: Twins, topic: str) -> None:
    nyc, lon = flow.source_servers, flow.target_servers
    new: list[str] = []
    written = False

    def while_somebody_writes(orders: Any) -> Any:
        nonlocal written
        if orders[0].settings.flow == flow.flow.name:
            # Between looking and copying, in every run of the flow itself: never is nothing left.
            new.append(f"new{len(new)}")
            write(nyc, topic, [new[-1]])
            written = True
        return carry_out_here(orders)

    plan = plan_of(flow)
    result = failback_of(flow).carry_out(plan, while_somebody_writes, tasks=1)
    assert (result.complete, result.failure) == (True, None)
    assert written
    flow.mirror()
    whole = [*numbered("a", 4), *numbered("b", 3), *new]
    assert values_of(nyc, topic) == values_of(lon, flow.twin(topic)) == whole


def test_a_run_of_the_topologys_own_flow_is_waited_for(
    kafka_pair: KafkaClusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = new_name()
    there, back = both_ways(kafka_pair, tmp_path, name, "identity")
    there.create(name)
    write(there.source_servers, name, numbered("a", 2))
    assert there.mirror().failures == []
    assert back.mirror().failures == []
    fail_over(there)
    write(there.target_servers, name, ["b"])
    access = back.ends().target
    with access.raw() as nyc:
        running = held(back.flow, access, nyc, "its own run")
        running.__enter__()
        monkeypatch.setattr(failback_runs, "LOOK_AGAIN_S", 0.1)
        said: list[str] = []

        def say(sentence: str) -> None:
            said.append(sentence)
            if "waiting for it" in sentence and len(said) > 1 and said[-2] == sentence:
                running.__exit__(None, None, None)

        failback = failback_of(there)
        result = type(failback)(**{**vars(failback), "say": say}).carry_out(plan_of(there), carry_out_here, tasks=1)
    assert result.complete, result.failure
    assert values_of(there.source_servers, name) == ["a0", "a1", "b"]


def test_a_plan_is_held_against_the_clusters_again_before_it_begins(flow: Twins, topic: str) -> None:
    plan = plan_of(flow)
    assert plan.refused == ()
    delete_topic(flow.source_servers, topic)
    flow.create(topic)
    stopped = failback_of(flow).carry_out(plan, carry_out_here, tasks=1)
    assert stopped.failure is not None
    assert f"{topic}-0 was deleted and created again" in stopped.failure
    assert (stopped.done, flow.record().state) == ((), State.FAILED_OVER)


def test_the_plan_of_a_failback_that_was_abandoned_is_not_carried_out(flow: Twins) -> None:
    plan, failback = plan_of(flow), failback_of(flow)
    failback._begun(plan)
    failback.abandon()
    with pytest.raises(FlowStateError, match="make a new plan"):
        failback.carry_out(plan, carry_out_here, tasks=1)
    assert fail_back(flow).complete
