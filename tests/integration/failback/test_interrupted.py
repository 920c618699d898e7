"""A failback that dies in or after any step goes on with the same plan; one that may not begin says why."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from local.kafka import KafkaClusters
from support.failing_back import fail_over, failback_of, new_name, numbered, plan_of, values_of, write
from support.mirroring import Twins, twins
from twinlog.cluster import span_reader
from twinlog.cluster.copy_order import carry_out_here
from twinlog.cluster.stranded_writer import StrandedWriter
from twinlog.errors import FlowStateError
from twinlog.model.failback import Mode, Step, Stranded
from twinlog.model.flow_state import Lease, State
from twinlog.operations import failback_topics
from twinlog.operations.failback import Failback
from twinlog.operations.failback_plan import FailbackPlan, FailbackResult
from twinlog.operations.failback_steps import FailbackSteps


class DiedError(Exception):
    """As if the process were gone."""


@pytest.fixture
def topic() -> str:
    return new_name()


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Iterator[Twins]:
    """Failed over, with two stranded and three written since."""
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    made = twins(nyc, lon, tmp_path, (topic,))
    made.create(topic)
    write(nyc, topic, numbered("a", 4))
    assert made.mirror().failures == []
    write(nyc, topic, ["s0", "s1"])
    fail_over(made)
    write(lon, made.twin(topic), numbered("b", 3))
    return made


def carry_on(flow: Twins, plan: FailbackPlan, monkeypatch: pytest.MonkeyPatch) -> FailbackResult:
    """Carry the plan out, dying once after the work of each step and once after it was noted, until nothing dies."""
    died: set[tuple[str, str]] = set()
    noted = Failback._noted

    def dying(name: str) -> Any:
        work = getattr(FailbackSteps, name)

        def step(self: Any) -> None:
            work(self)
            if ("work", name) not in died:
                died.add(("work", name))
                raise DiedError

        return step

    def note(self: Failback, progress: Any) -> Any:
        answer = noted(self, progress)
        if ("note", str(progress.done)) not in died:
            died.add(("note", str(progress.done)))
            raise DiedError
        return answer

    for one in Step:
        monkeypatch.setattr(FailbackSteps, one.value, dying(one.value))
    monkeypatch.setattr(Failback, "_noted", note)
    while True:
        try:
            result = failback_of(flow).carry_out(plan, carry_out_here, tasks=1)
        except DiedError:
            if flow.record().state is State.FAILING_BACK:
                assert plan_of(flow).id == plan.id, "the same plan goes on"
            continue
        assert len(died) == 2 * len(Step)
        return result


@pytest.mark.parametrize(
    ("mode", "stranded"),
    [(Mode.RESUME, Stranded.TOPIC), (Mode.RESUME, Stranded.APPEND), (Mode.REBUILD, Stranded.LEAVE)],
)
def test_it_dies_after_every_step_and_goes_on(
    flow: Twins, topic: str, monkeypatch: pytest.MonkeyPatch, mode: Mode, stranded: Stranded
) -> None:
    nyc, lon, twin = flow.source_servers, flow.target_servers, flow.twin(topic)
    result = carry_on(flow, plan_of(flow, mode, stranded), monkeypatch)
    assert result.complete
    assert flow.record().state is State.ACTIVE
    a, b = numbered("a", 4), numbered("b", 3)
    if mode is Mode.REBUILD:
        assert values_of(nyc, topic) == values_of(lon, twin) == [*a, *b]
    else:
        assert values_of(nyc, topic) == [*a, "s0", "s1", *b]
        assert values_of(lon, twin) == ([*a, *b] if stranded is Stranded.TOPIC else [*a, *b, "s0", "s1"])
        if stranded is Stranded.TOPIC:
            assert values_of(lon, f"{topic}.stranded") == ["s0", "s1"]
    assert flow.mirror().recorded.records == 0


def test_nothing_else_runs_the_flow_meanwhile_and_it_can_be_abandoned(flow: Twins, topic: str) -> None:
    plan = plan_of(flow)
    other = plan_of(flow)
    failback = failback_of(flow)
    failback._begun(plan)
    assert "is failing back" in str(flow.mirror().skipped)
    with pytest.raises(FlowStateError, match="is under way"):
        failback.carry_out(other, carry_out_here, tasks=1)
    assert "failed over again" in failback.abandon()
    assert flow.record().state is State.FAILED_OVER
    with pytest.raises(FlowStateError, match="no failback is under way"):
        failback.abandon()
    assert failback.carry_out(other, carry_out_here, tasks=1).complete
    assert plan_of(flow).refused == (f"{flow.flow.name} is active: only a flow that has failed over can fail back",)


def test_a_try_that_was_killed_with_the_lease_is_in_nobodys_way(flow: Twins, topic: str) -> None:
    plan, failback = plan_of(flow, stranded=Stranded.TOPIC), failback_of(flow)
    failback._begun(plan)
    in_an_hour = int(time.time() * 1000) + 3_600_000
    left = Lease(f"failback-{plan.id}", "a process that is gone", in_an_hour)
    flow.change_record(lambda record: replace(record, lease=left))
    result = failback.carry_out(plan, carry_out_here, tasks=1)
    assert result.complete, result.failure
    assert values_of(flow.source_servers, topic) == [*numbered("a", 4), "s0", "s1", *numbered("b", 3)]


def test_producers_that_go_on_writing_hold_the_seam(flow: Twins, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Producer({"bootstrap.servers": flow.target_servers})
    written: list[str] = []

    def still_writing(orders: Any) -> Any:
        written.append(f"late{len(written)}")
        writer.produce(flow.twin(topic), written[-1].encode())
        assert writer.flush(30) == 0
        return carry_out_here(orders)

    failback = Failback(**{**vars(failback_of(flow)), "seam_within_s": 0.5})
    plan = plan_of(flow)
    stopped = failback.carry_out(plan, still_writing, tasks=1)
    assert stopped.failure is not None
    assert "producers still write" in stopped.failure or "not copied to their end" in stopped.failure
    assert stopped.done[-1] in (Step.HOME, Step.DELETE)
    assert failback.carry_out(plan, carry_out_here, tasks=1).complete
    assert values_of(flow.source_servers, topic)[-len(written) :] == written


@pytest.mark.parametrize("stranded", [Stranded.LEAVE, Stranded.TOPIC])
def test_it_dies_between_two_transactions_of_a_step(
    flow: Twins, topic: str, monkeypatch: pytest.MonkeyPatch, stranded: Stranded
) -> None:
    nyc, lon = flow.source_servers, flow.target_servers
    for _ in range(2):
        # Too large for one fetch: each goes in a transaction of its own.
        write(nyc, topic, ["z" * 300_000])
    monkeypatch.setattr(span_reader, "FETCH_BYTES", 100_000)
    plan = plan_of(flow, stranded=stranded)
    commit, commits = StrandedWriter._commit, iter(range(100))

    async def dying(self: StrandedWriter, *asked: Any) -> Any:
        if next(commits) == 1:
            raise DiedError
        return await commit(self, *asked)

    with monkeypatch.context() as patched:
        patched.setattr(StrandedWriter, "_commit", dying)
        with pytest.raises(DiedError):
            failback_of(flow).carry_out(plan, carry_out_here, tasks=1)
    result = failback_of(flow).carry_out(plan, carry_out_here, tasks=1)
    assert result.complete, result.failure
    assert result.figures["verdict"] == "equal"
    assert result.figures["stranded_records"] == 4, "also what a try counted that died"
    assert values_of(lon, flow.twin(topic)) == [*numbered("a", 4), *numbered("b", 3)]
    if stranded is Stranded.TOPIC:
        assert values_of(lon, f"{topic}.stranded") == ["s0", "s1", *["z" * 300_000] * 2]


def test_it_dies_with_the_topics_deleted_and_not_yet_made_anew(
    flow: Twins, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(flow, Mode.REBUILD)

    async def dying(*_: Any) -> Any:
        raise DiedError

    with monkeypatch.context() as patched:
        patched.setattr(failback_topics, "create_topics", dying)
        with pytest.raises(DiedError):
            failback_of(flow).carry_out(plan, carry_out_here, tasks=1)
    result = failback_of(flow).carry_out(plan, carry_out_here, tasks=1)
    assert result.complete, result.failure
    assert values_of(flow.source_servers, topic) == [*numbered("a", 4), *numbered("b", 3)]
    assert flow.mirror().recorded.records == 0
