"""What a run of a flow would do now, found by looking: it takes no lease and changes nothing.

A flow that is idle, paused, failed over or held by somebody else is told from one that has work before anything is
started for it. What is counted is an estimate of the moment; the run looks again under its lease.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from twinlog.cluster.raw import RawClient
from twinlog.intake.extensions import naming_of
from twinlog.ledger.last_positions import last_positions
from twinlog.ledger.store import Ledger
from twinlog.model.description import Description, adopted, described
from twinlog.model.findings import Finding, FindingKind
from twinlog.model.flow_state import FlowRecord, State
from twinlog.model.plan import Partitions, Plan
from twinlog.model.topology import Flow, Topology
from twinlog.operations.checkpoint import Checkpointing
from twinlog.operations.flow_gate import record_of
from twinlog.operations.lease import reason_to_wait
from twinlog.operations.migration_evidence import reason_to_stay_away
from twinlog.operations.mirror_result import failures_of, planned_findings
from twinlog.operations.position_keeping import renewal_due
from twinlog.operations.recording import anything_new
from twinlog.operations.run_scope import (
    NO_LIMITS,
    Ends,
    Limits,
    begins,
    not_shown,
    plan_of_run,
    topics_of_run,
    up_to_time,
)
from twinlog.operations.survey import survey
from twinlog.operations.twin_planning import Sides
from twinlog.operations.way_back import compacted_both_ways


class Step(StrEnum):
    """What a run consists of, beside looking."""

    COPY = "copy"
    RECORD = "record"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run would do."""

    flow: str
    run: str
    state: State
    refused: str | None = None
    """Why it may not run now, in a sentence."""
    due: tuple[Step, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why there is something to copy, or to do before copying, each in a few words."""
    records: int = 0
    bytes: int = 0
    partitions: int = 0
    left_records: int = 0
    """Offsets that are ready and do not fit the budget."""
    new_topics: tuple[str, ...] = ()
    """The source's topics whose twin is missing, or has too few partitions."""
    findings: tuple[Finding, ...] = ()
    since: int = 0
    """How far the ledger is."""

    @property
    def sentence(self) -> str:
        """What is to be done, in a line."""
        if self.refused is not None:
            return self.refused
        if not self.due:
            return f"{self.flow}: nothing to do"
        if Step.COPY in self.due:
            return f"{self.flow}: {'; '.join(self.reasons)}"
        return f"{self.flow}: nothing to copy; due: {', '.join(self.due)}"

    def to_json(self) -> dict[str, Any]:
        return {
            "flow": self.flow,
            "run": self.run,
            "state": str(self.state),
            "refused": self.refused,
            "due": [str(step) for step in self.due],
            "reasons": list(self.reasons),
            "records": self.records,
            "bytes": self.bytes,
            "partitions": self.partitions,
            "left_records": self.left_records,
            "new_topics": list(self.new_topics),
            "findings": [finding.message for finding in self.findings],
            "since": self.since,
        }


@dataclass(frozen=True, slots=True)
class Looking:
    """A flow and everything that looking at it needs."""

    topology: Topology
    flow: Flow
    ends: Ends
    ledger: Ledger

    def look(self, run: str, limits: Limits = NO_LIMITS) -> RunPlan:
        """What the run of this id would do now."""
        with self.ends.target.raw() as target, self.ends.source.raw(beside=target) as source:
            record = target.run(record_of(self.flow, target))
            nothing = RunPlan(self.flow.name, run, record.state)
            ours = described(self.topology, self.flow)
            refused = reason_to_wait(self.flow, record, run, ours)
            if refused is None and not record.lanes:
                refused = reason_to_stay_away(self.flow, self.ledger)
            if refused is not None:
                return replace(nothing, refused=refused)
            found, findings = self._survey(source, target, limits)
            lanes, begin_at = self.flow.lanes, begins(source, found, limits)
            planned = plan_of_run(self.flow, found, lanes, lanes, limits, begin_at)
            findings = (*findings, *planned_findings(planned))
            new = sorted({one.partition.topic for one in findings if one.kind is FindingKind.TARGET_MISSING})
            # A missing twin is what the run is going to make.
            left = [finding for finding in findings if finding.kind is not FindingKind.TARGET_MISSING]
            ranges = [one for task in planned.tasks for one in task.ranges]
            reasons = (
                *_reasons(planned, new),
                *_upkeep(record, ours, renew=limits.topics is None and target.run(renewal_due(target, record))),
                # A run can't mend these; it fails by them, so that nobody takes the flow for well.
                *failures_of(left),
            )
            return replace(
                nothing,
                due=self._due(target, record, limits, copy=bool(reasons)),
                reasons=reasons,
                records=sum(one.range.offsets for one in ranges),
                bytes=sum(one.bytes for one in ranges),
                partitions=len(ranges),
                left_records=planned.left_records,
                new_topics=tuple(new),
                findings=tuple(left),
                since=self.ledger.mark().node.total,
            )

    def _survey(self, source: RawClient, target: RawClient, limits: Limits) -> tuple[Partitions, tuple[Finding, ...]]:
        sides = Sides(source, source.run(source.metadata()), target, target.run(target.metadata()))
        topics = topics_of_run(self.topology, self.flow, sides, limits)
        refused = compacted_both_ways(self.topology, self.flow, sides, topics)
        left_out = {finding.partition.topic for finding in refused}
        names = [topic.name for topic in topics if topic.name not in left_out]
        found = target.run(survey(source, target, self.flow, naming_of(self.flow), names, in_step=False))
        partitions = up_to_time(source, self._with_forgotten(found.partitions), limits.until_ms)
        hidden = not_shown(self.topology, self.flow, sides, limits, found.other_twins)
        return partitions, (*refused, *hidden, *found.findings)

    def _with_forgotten(self, found: Partitions) -> Partitions:
        """With the positions that the target has forgotten, as far as the ledger knows them."""
        missing = [pair for pair, position in zip(found.pairs, found.positions, strict=True) if position is None]
        known = last_positions(self.ledger, missing)
        pairs = zip(found.pairs, found.positions, strict=True)
        return replace(found, positions=[position or known.get(pair.target) for pair, position in pairs])

    def _due(self, target: RawClient, record: FlowRecord, limits: Limits, *, copy: bool) -> tuple[Step, ...]:
        has_run = record.lanes > 0
        record_due = copy or (has_run and anything_new(self.ledger, self.flow, self.ends.target, target))
        checkpoints = Checkpointing(self.topology, self.flow, self.ends.source, self.ends.target, self.ledger)
        checkpoint_due = limits.topics is None and (copy or has_run) and checkpoints.due()
        steps = {Step.COPY: copy, Step.RECORD: record_due, Step.CHECKPOINT: checkpoint_due}
        return tuple(step for step, is_due in steps.items() if is_due)


def _reasons(planned: Plan, new: Sequence[str]) -> Iterator[str]:
    ranges = [one for task in planned.tasks for one in task.ranges]
    if ranges:
        offsets, size = sum(one.range.offsets for one in ranges), sum(one.bytes for one in ranges)
        yield f"{offsets:,} records, about {size / 1e6:,.1f} MB, wait on {len(ranges):,} partitions"
    if new:
        yield f"{len(new):,} topics are new or have grown"


def _upkeep(record: FlowRecord, ours: Description, *, renew: bool) -> Iterator[str]:
    """What only a run may do, records or none."""
    if not record.lanes:
        yield "it has never run"
        return
    if record.retiring_lanes:
        yield "an earlier run's lanes are to be fenced"
    if adopted(record.description, ours) != record.description:
        yield "its description in the topology has changed"
    if renew:
        yield "positions are to be renewed"
