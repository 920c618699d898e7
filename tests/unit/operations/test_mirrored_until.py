from __future__ import annotations

from dataclasses import replace

from twinlog.cluster.copier import LaneReport, Outcome
from twinlog.model.figures import Figures
from twinlog.model.findings import Finding, FindingKind
from twinlog.model.offsets import TopicPartition
from twinlog.operations.mirror_result import CopyResult

WHOLE = CopyResult("nyc->lon", "r", as_of_ms=5)


def test_a_run_that_left_nothing_says_up_to_when_everything_is_there() -> None:
    assert WHOLE.mirrored_until_ms == 5


def test_one_that_left_something_says_nothing() -> None:
    place = TopicPartition("orders", 0)
    held_back, cut = (Finding(kind, place, 7, "") for kind in (FindingKind.HELD_BACK, FindingKind.TRUNCATED))
    left = (
        replace(WHOLE, left_records=1),
        replace(WHOLE, skipped="another run holds it"),
        replace(WHOLE, findings=(held_back,)),
        replace(WHOLE, findings=(cut,)),
        replace(WHOLE, lanes=(LaneReport(0, Outcome.FENCED, "", Figures(), ()),)),
    )
    assert [result.mirrored_until_ms for result in left] == [None] * len(left)
