"""Two runs of one flow at the same time: one of them copies, and whichever is late does no harm."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.crashing import ChildRun, Job, Step
from support.ledger_check import check_twins, flow_positions, log_ends
from support.mirroring import Twins
from support.waiting import await_condition
from twinlog.cluster.copier import LaneReport, Outcome
from twinlog.cluster.copy_order import CopyOrder, carry_out_here

SHORT_LEASE_S = 1.5


def test_the_second_is_skipped(flow: Twins, topic: str) -> None:
    with ChildRun(Job(flow, "first", Step.AFTER_PRODUCE, signal=signal.SIGSTOP)) as first:
        first.await_stopped()

        second = flow.mirror(run="second")
        first.resume()
        answer = first.result()

    assert second.skipped is not None
    assert second.skipped.startswith("run first of ")
    assert "\n" not in second.skipped
    assert answer["skipped"] is None
    assert check_twins(flow, topic) == answer["records"]


def test_both_begin_in_one_moment(flow: Twins, topic: str) -> None:
    with ChildRun(Job(flow, "one")) as one, ChildRun(Job(flow, "other")) as other:
        answers = [one.result(), other.result()]

    assert check_twins(flow, topic) == sum(answer["records"] for answer in answers)


@pytest.mark.parametrize("step", [Step.BEFORE_PRODUCE, Step.BEFORE_COMMIT, Step.AFTER_COMMIT])
def test_a_run_that_hung_is_overtaken_and_fenced(flow: Twins, topic: str, step: Step) -> None:
    job = Job(flow, "hung", step, nth=2, signal=signal.SIGSTOP, lease_s=SHORT_LEASE_S)
    with ChildRun(job) as hung:
        hung.await_stopped()
        await_condition(lambda: flow.mirror(run="next").skipped is None, "the hung run's lease to end")
        copied = check_twins(flow, topic)
        twin, journal = flow.twin(topic), f"twinlog.{flow.flow.source}.{flow.flow.target}.journal.internal"
        before = [log_ends(flow.target_servers, name) for name in (twin, journal)]

        hung.resume()
        answer = hung.result()

    assert Outcome.FENCED in {lane["outcome"] for lane in answer["lanes"]}
    assert {lane["outcome"] for lane in answer["lanes"]} <= {Outcome.FENCED, Outcome.STOPPED, Outcome.DONE}
    assert [log_ends(flow.target_servers, name) for name in (twin, journal)] == before
    assert check_twins(flow, topic) == copied


def test_a_late_order_of_an_earlier_try_does_not_touch_the_next_one(flow: Twins, topic: str) -> None:
    kept: list[CopyOrder] = []
    late: list[LaneReport] = []

    def keep(orders: list[CopyOrder]) -> list[LaneReport]:
        kept.extend(orders)
        return []

    def beside_the_late_order(orders: list[CopyOrder]) -> list[LaneReport]:
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(carry_out_here, orders)
            await_condition(lambda: running.done() or bool(flow_positions(flow)), "the second try to commit")
            late.extend(carry_out_here(kept))
            return running.result()

    flow.mirror(keep, run="same")
    result = flow.mirror(beside_the_late_order, run="same")

    assert {report.outcome for report in late} == {Outcome.STOPPED}
    assert all("not by run same of" in report.reason for report in late)
    assert {report.outcome for report in result.lanes} == {Outcome.DONE}
    assert check_twins(flow, topic) == result.recorded.records


def test_a_hung_try_does_not_end_the_next_try_of_its_run(flow: Twins, topic: str) -> None:
    with ChildRun(Job(flow, "same", Step.AFTER_COMMIT, signal=signal.SIGSTOP)) as hung:
        hung.await_stopped()

        def after_the_hung_try(orders: list[CopyOrder]) -> list[LaneReport]:
            hung.resume()
            hung.result()
            return carry_out_here(orders)

        result = flow.mirror(after_the_hung_try, run="same")

    assert {report.outcome for report in result.lanes} == {Outcome.DONE}
    check_twins(flow, topic)
