"""What a run of a flow did, as DAGs, the command line and the page show it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from twinlog.cluster.copier import LaneReport, Outcome
from twinlog.model.findings import Finding, FindingKind
from twinlog.model.plan import FindingKind as PlanKind
from twinlog.model.plan import Plan

_FROM_PLAN = {
    PlanKind.EXPIRED: FindingKind.EXPIRED,
    PlanKind.SOURCE_RECREATED: FindingKind.RECREATED,
    PlanKind.TARGET_RECREATED: FindingKind.TARGET_REPLACED,
    PlanKind.SOURCE_TRUNCATED: FindingKind.TRUNCATED,
    PlanKind.TARGET_TRUNCATED: FindingKind.TARGET_REPLACED,
}


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """What the journal says of one run: the totals that count."""

    records: int = 0
    bytes: int = 0
    gaps: Mapping[str, int] = field(default_factory=dict)
    topics: tuple[str, ...] = ()
    """The source's topics of which there are records among them."""
    notes: tuple[str, ...] = ()
    """What telling others of the run had to say."""

    def to_json(self) -> dict[str, Any]:
        return {"records": self.records, "bytes": self.bytes, "gaps": dict(self.gaps)}


@dataclass(frozen=True, slots=True)
class CopyResult:
    """What became of copying in one run; how much was copied, the journal says."""

    flow: str
    run: str
    skipped: str | None = None
    """Why nothing was done, in a sentence; None where the run took place."""
    seconds: float = 0.0
    partitions: int = 0
    left_records: int = 0
    """Offsets that were ready and did not fit the budget."""
    lanes: tuple[LaneReport, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    """What preparing the target had to say; it kept nothing from being copied that is not a finding too."""
    since: int = 0
    """How far the ledger was before; the run's entries come after."""
    topics: Mapping[str, str] = field(default_factory=dict)
    """The source's topics that there was something to copy of, each with its twin."""
    as_of_ms: int = 0
    """Of what was on the source by then, the run took what fits its limits."""

    @property
    def mirrored_until_ms(self) -> int | None:
        """What was on the source by then, of the topics that the run is about, is on the target; None where it is not
        all of it."""
        whole = not (self.left_records or self.failures or self.skipped)
        whole = whole and all(report.outcome is Outcome.DONE for report in self.lanes)
        held_back = any(finding.kind is FindingKind.HELD_BACK for finding in self.findings)
        return self.as_of_ms if whole and not held_back else None

    @property
    def failures(self) -> list[str]:
        """What kept a lane or a partition from being copied, each a sentence."""
        lanes = [report.reason for report in self.lanes if report.outcome is Outcome.FAILED]
        return lanes + failures_of(self.findings)

    @property
    def warnings(self) -> list[str]:
        """Everything that people must know beside the figures, each a sentence, once."""
        lanes = [f"lane {one.lane}: {one.reason}" for one in self.lanes if one.reason]
        return list(dict.fromkeys([*lanes, *(finding.message for finding in self.findings), *self.notes]))

    def to_json(self) -> dict[str, Any]:
        return {
            "flow": self.flow,
            "run": self.run,
            "skipped": self.skipped,
            "seconds": round(self.seconds, 3),
            "partitions": self.partitions,
            "left_records": self.left_records,
            "mirrored_until_ms": self.mirrored_until_ms,
            "findings": [_finding(finding) for finding in self.findings],
            "notes": list(self.notes),
            "lanes": [{"lane": one.lane, "outcome": one.outcome, "reason": one.reason} for one in self.lanes],
        }


@dataclass(frozen=True, slots=True)
class MirrorResult(CopyResult):
    """One whole run."""

    recorded: RecordedRun = field(default_factory=RecordedRun)

    def to_json(self) -> dict[str, Any]:
        return {**CopyResult.to_json(self), **self.recorded.to_json()}


def whole_run(copied: CopyResult, recorded: RecordedRun) -> MirrorResult:
    """The result of a run that has copied and recorded."""
    return MirrorResult(**{column.name: getattr(copied, column.name) for column in fields(copied)}, recorded=recorded)


def failures_of(findings: Iterable[Finding]) -> list[str]:
    """The findings that somebody has to do something about; what is held back comes by itself."""
    return [finding.message for finding in findings if finding.kind is not FindingKind.HELD_BACK]


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "topic": finding.partition.topic,
        "partition": finding.partition.partition,
        "offset": finding.offset,
        "message": finding.message,
    }


def held_to_the_end(reports: Sequence[LaneReport]) -> list[LaneReport]:
    """The reports of a run that nobody has overtaken: a lane that was fenced all the same has failed, unless another
    writer of this very run, as of a task that was tried twice, has finished it."""
    finished = {report.lane for report in reports if report.outcome is Outcome.DONE}
    return [
        replace(
            report,
            outcome=Outcome.FAILED,
            reason=f"{report.reason}; yet the run held the flow's lease to its end, so it was none of twinlog's: look "
            "for another program that uses this transactional id. The next run goes on at the committed positions",
        )
        if report.outcome is Outcome.FENCED and report.lane not in finished
        else report
        for report in reports
    ]


def planned_findings(planned: Plan) -> Iterator[Finding]:
    """What planning met, beside what copying meets."""
    for found in planned.findings:
        yield Finding(_FROM_PLAN[found.kind], found.pair.source, found.start, found.message)
