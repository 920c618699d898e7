from __future__ import annotations

from twinlog.cluster.copier import LaneReport, Outcome
from twinlog.model.figures import Figures
from twinlog.operations.mirror_result import MirrorResult, held_to_the_end


def report(lane: int, outcome: Outcome, reason: str = "") -> LaneReport:
    return LaneReport(lane, outcome, reason, Figures(), ())


FENCED = report(1, Outcome.FENCED, "cluster lon: twinlog.nyc->lon.1: InitProducerIdRequest: ProducerFencedError")


def test_a_lane_that_was_fenced_by_nobody_who_holds_the_flow_has_failed() -> None:
    reports = held_to_the_end([report(0, Outcome.DONE), FENCED])

    result = MirrorResult("nyc->lon", "run", lanes=tuple(reports))

    (failure,) = result.failures
    assert failure.startswith(FENCED.reason)
    assert "held the flow's lease to its end" in failure
    assert [f"lane 1: {failure}"] == result.warnings
    assert reports[0] == report(0, Outcome.DONE)


def test_a_task_that_was_tried_twice_has_finished_its_lane_once() -> None:
    both = [FENCED, report(1, Outcome.DONE)]
    assert held_to_the_end(both) == both


def test_a_run_that_was_overtaken_has_not_failed() -> None:
    assert MirrorResult("nyc->lon", "run", lanes=(FENCED,)).failures == []
