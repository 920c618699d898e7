"""The target takes over: where groups go on, by each strategy, with the source gone, hanging or half dead."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from support.groups import checkpoint, commit, committed, read, staying
from support.mirroring import Twins, producer
from support.silent import silent_server
from support.source_logs import fill
from support.takeovers import fail_over, failing_over
from support.waiting import NOT_HUNG_S
from twinlog.errors import ConfigurationError, FlowStateError
from twinlog.model.checkpoints import Reason
from twinlog.model.flow_state import State
from twinlog.model.takeover import Request, Strategy
from twinlog.model.takeover_progress import Step

WITHOUT_COMMITS = {"sync_group_offsets_enabled": False}
PARTITIONS = 3


def classic_case(flow: Twins, topic: str, group: str) -> Counter[tuple[int, bytes]]:
    """10,000 records, of which 9,998 are mirrored and a group has read 8,000; what it has not read of the mirrored."""
    flow.create(topic, PARTITIONS)
    for partition in range(PARTITIONS):
        fill(flow.source_servers, topic, [f"{number} of {partition}" for number in range(3_333)][partition:], partition)
    fill(flow.source_servers, topic, ["one", "two"], 0)
    read_before = read(flow.source_servers, group, topic, 8_000)
    assert read_before.total() == 8_000
    assert flow.mirror().failures == []
    everything = Counter(
        (number, seen.value or b"") for number, records in flow.read_source(topic).items() for seen in records
    )
    assert everything.total() == 9_998
    fill(flow.source_servers, topic, ["never", "crossed"], 1)
    checkpoint(flow, **WITHOUT_COMMITS)
    return everything - read_before


def test_the_classic_case(flow: Twins, topic: str, group: str) -> None:
    unread = classic_case(flow, topic, group)
    started = time.monotonic()

    result = fail_over(flow)

    assert time.monotonic() - started < NOT_HUNG_S
    assert (result.failures, result.moved.left_out, result.exit_code) == ((), (), 0)
    assert (result.plan.lost_records, [loss.records for loss in result.plan.losses]) == (2, [2])
    assert sum(row.unread or 0 for row in result.plan.rows) == 1_998
    assert read(flow.target_servers, group, flow.twin(topic)) == unread
    assert unread.total() == 1_998
    record = flow.record()
    assert (record.state, record.lease) == (State.FAILED_OVER, None)
    assert record.takeover is not None
    assert (record.takeover.plan, record.takeover.done, record.takeover.ended) == (result.plan.id, Step.ANNOUNCE, True)
    assert flow.mirror().skipped == f"{flow.flow.name} is failed over; nothing was copied"


def test_a_dry_run_changes_nothing_and_its_plan_can_be_carried_out(flow: Twins, topic: str, group: str) -> None:
    unread = classic_case(flow, topic, group)
    plan = failing_over(flow).plan(Request())

    assert flow.record().state is State.ACTIVE
    assert committed(flow.target_servers, group, flow.twin(topic)) == {}
    kept = failing_over(flow).kept(plan.id)
    assert kept == plan
    result = failing_over(flow).apply(kept)
    assert result.moved.committed == PARTITIONS
    assert read(flow.target_servers, group, flow.twin(topic)) == unread
    with pytest.raises(FlowStateError, match="has no plan nothing"):
        failing_over(flow).kept("nothing")


def test_a_source_that_hangs_holds_nobody_up_and_one_that_lives_is_asked(flow: Twins, topic: str, group: str) -> None:
    classic_case(flow, topic, group)
    with silent_server() as hanging:
        started = time.monotonic()
        silent = failing_over(flow, hanging).plan(Request())
        assert time.monotonic() - started < NOT_HUNG_S
    alive = failing_over(flow, flow.source_servers, source_within_s=10).plan(Request())

    assert (silent.source_answered, alive.source_answered) == (False, True)
    assert silent.rows == alive.rows
    assert (silent.lost_records, alive.lost_records) == (2, 2)
    assert alive.lost_seconds is not None
    assert "does not answer" in str(silent.lost_note)


def test_a_source_that_answers_half_of_what_is_asked_is_believed_in_that(
    flow: Twins, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    classic_case(flow, topic, group)
    commit(flow.source_servers, group, topic, {0: 3_000})

    async def hangs(source: object, *_: object, **__: object) -> None:
        await flow_pause(source)

    async def flow_pause(source: object) -> None:
        await source.pause(60)  # type: ignore[attr-defined]

    monkeypatch.setattr("twinlog.operations.source_look.measure_partitions", hangs)
    plan = failing_over(flow, flow.source_servers).plan(Request())

    assert plan.source_answered
    (first,) = [row for row in plan.rows if row.partition == 0]
    assert first.unread == 335
    assert plan.lost_records == 2
    assert plan.lost_seconds is not None
    assert plan.lost_seconds < NOT_HUNG_S, "no older than the last record that was copied"


def test_each_strategy_and_another_one_for_some_groups(flow: Twins, mark: str, topic: str) -> None:
    flow.create(topic)
    writer = producer(flow.source_servers)
    for number in range(10):
        writer.produce(topic, str(number), timestamp=1_000_000 + number * 1_000)
    assert writer.flush(30) == 0
    names = [f"{name}-{mark}" for name in ("as-it-was", "by-time", "first", "last")]
    for name in names:
        commit(flow.source_servers, name, topic, {0: 7})
    flow.mirror()
    checkpoint(flow, **WITHOUT_COMMITS)
    twin = flow.twin(topic)

    def values(group: str) -> list[bytes]:
        return [value for _, value in read(flow.target_servers, group, twin)]

    overrides = (("first.*", Strategy.EARLIEST), ("last.*", Strategy.LATEST), ("by-.*", Strategy.TIMESTAMP))
    result = fail_over(flow, Request(Strategy.TRANSLATED, overrides, at_ms=1_005_500, margin_ms=1_000))

    found = {row.group.removesuffix(f"-{mark}"): (row.offset, row.how, row.unread) for row in result.plan.rows}
    end = committed(flow.target_servers, names[3], twin)[0]
    assert found == {
        "as-it-was": (7, "copied", 3),
        "by-time": (5, "by time", 5),
        "first": (0, "earliest", 10),
        "last": (end, "latest", 0),
    }
    for name, start in zip(names, (7, 5, 0), strict=False):
        assert values(name) == [str(number).encode() for number in range(start, 10)]
    with pytest.raises(ConfigurationError, match="needs a time"):
        Request(Strategy.TIMESTAMP)


def test_a_group_ahead_of_the_mirror_goes_on_at_the_end_of_the_copy(flow: Twins, mark: str, topic: str) -> None:
    """It has read all that was copied, so nothing is read again, and nothing of what is there is skipped."""
    group = f"ahead-{mark}"
    flow.create(topic)
    fill(flow.source_servers, topic, range(10))
    flow.mirror()
    fill(flow.source_servers, topic, ["a", "b"])
    commit(flow.source_servers, group, topic, {0: 12})
    checkpoint(flow, **WITHOUT_COMMITS)

    (row,) = fail_over(flow).plan.rows

    assert (row.how, row.unread) == ("end of copy", 0)
    fill(flow.target_servers, flow.twin(topic), ["next"])
    assert read(flow.target_servers, group, flow.twin(topic)) == Counter({(0, b"next"): 1})


def test_groups_that_are_on_the_target_already_are_left_alone(flow: Twins, mark: str, topic: str) -> None:
    there, further, other = (f"{name}-{mark}" for name in ("there", "further", "other"))
    flow.create(topic)
    fill(flow.source_servers, topic, range(20))
    for name in (there, further, other):
        commit(flow.source_servers, name, topic, {0: 5})
    flow.mirror()
    checkpoint(flow, **WITHOUT_COMMITS)
    twin = flow.twin(topic)
    commit(flow.target_servers, further, twin, {0: 9})
    failover = failing_over(flow)
    plan = failover.plan(Request())

    # It comes to life between the plan and its approval.
    with staying(flow.target_servers, there, twin):
        result = failover.apply(plan)

    assert [(row.group, row.reason) for row in result.left_out] == [(there, Reason.ACTIVE)]
    assert {row.group: (row.offset, row.how) for row in plan.rows}[further] == (9, Reason.OWN_POSITION)
    assert committed(flow.target_servers, further, twin) == {0: 9}
    assert committed(flow.target_servers, other, twin) == {0: 5}
    # Said once more and otherwise, it is moved; what was done already is not done again.
    again = fail_over(flow, Request(groups=further, over_own_positions=True))
    assert committed(flow.target_servers, further, twin) == {0: 5}
    assert again.moved.committed == 1
    assert fail_over(flow).moved.committed == 1, "the one that was there has left"


def test_a_flow_that_never_ran_has_nothing_to_take_over(flow: Twins) -> None:
    with pytest.raises(FlowStateError, match="has never run"):
        failing_over(flow).plan(Request())
