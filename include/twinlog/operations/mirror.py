"""A run of a flow: prepare the target, plan, copy, record, checkpoint.

A run copies under the flow's lease; without the lease it ends as skipped and has changed nothing but, before the first
run, created the flow's internal topics. Whatever ends a run early, the next one goes on from the committed positions.

`Mirror.run` is a whole run in one go. Airflow takes the same steps one by one, each in a task: `look`, `copy` and
`record`, and then the checkpoints (see `operations.checkpoint`).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from twinlog.cluster.copier import LaneReport, Outcome
from twinlog.cluster.copy_order import CopyOrder, Executor
from twinlog.cluster.metadata import Topic
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import principal_of
from twinlog.errors import FencedError, FencedOrTimedOutError, FlowStateError
from twinlog.intake.extensions import naming_of
from twinlog.ledger.store import Ledger
from twinlog.model.description import described
from twinlog.model.findings import Finding
from twinlog.model.flow_state import Holder, State
from twinlog.model.lanes import state_topic
from twinlog.model.plan import Plan
from twinlog.model.topology import Flow, Topology
from twinlog.operations.checkpoint import Checkpointing
from twinlog.operations.copy_settings import copy_settings
from twinlog.operations.directions import as_it_went
from twinlog.operations.flow_gate import reason_to_leave, record_of
from twinlog.operations.heartbeat import beat_of_run
from twinlog.operations.internal_topics import create_internal_topics
from twinlog.operations.lease import LEASE_S, Held, flow_store, held
from twinlog.operations.migration_evidence import reason_to_stay_away
from twinlog.operations.mirror_result import (
    CopyResult,
    MirrorResult,
    RecordedRun,
    held_to_the_end,
    planned_findings,
    whole_run,
)
from twinlog.operations.offset_syncs import COLUMNS as OFFSET_SYNC_COLUMNS
from twinlog.operations.offset_syncs import write_offset_syncs
from twinlog.operations.position_keeping import PositionKeeper
from twinlog.operations.progress import Show, watched
from twinlog.operations.recording import TOTALLED, bring_up_to_date, rows_of_run, run_totals
from twinlog.operations.run_scope import (
    NO_LIMITS,
    Ends,
    Limits,
    begins,
    not_shown,
    plan_of_run,
    seconds_of_run,
    topics_of_run,
    up_to_time,
)
from twinlog.operations.started_anew import started_anew
from twinlog.operations.survey import Survey, survey
from twinlog.operations.sync import Sync
from twinlog.operations.twin_planning import Sides
from twinlog.operations.way_back import compacted_both_ways, meets_another, way_back

__all__ = ["NO_LIMITS", "Ends", "Limits", "Mirror", "new_run_id"]

Result = TypeVar("Result", bound=CopyResult)


@dataclass(frozen=True)
class _Scene:
    """Both clusters as a run finds them, and what it may copy of them."""

    sides: Sides
    topics: Sequence[Topic]
    refused: Sequence[Finding]
    limits: Limits


class Mirror:
    """A flow and everything a run of it needs."""

    def __init__(
        self,
        topology: Topology,
        flow: Flow,
        ends: Ends,
        ledger: Ledger,
        *,
        show: Show | None = None,
        lease_s: float = LEASE_S,
        state: State = State.ACTIVE,
        migration: str | None = None,
    ) -> None:
        """`show` is called every second of copying with how far it has come; the flow runs only in `state`, and runs
        that are part of a `migration` keep the rate that holds on the target."""
        self._topology = topology
        self._flow = flow
        self._ends = ends
        self._ledger = ledger
        self._show = show
        self._lease_s = lease_s
        self._state = state
        self._migration = migration
        self._policy = naming_of(flow)

    def run(self, execute: Executor, *, tasks: int, limits: Limits = NO_LIMITS, run: str | None = None) -> MirrorResult:
        """Copy what is new, once; at most `tasks` orders are given to `execute`."""

        def whole(scene: _Scene, lease: Held) -> MirrorResult:
            sides = scene.sides
            notes = self._beat(sides.source, limits)
            copied = self._copy(scene, lease, execute, tasks)
            recorded = self._record(sides.source, sides.target, copied.run, copied.since)
            notes = (*notes, *copied.notes, *recorded.notes, *self._checkpoint(limits))
            return whole_run(replace(copied, notes=notes), recorded)

        return self._under_lease(MirrorResult, whole, run or new_run_id(), limits)

    def copy(self, execute: Executor, *, tasks: int, limits: Limits = NO_LIMITS, run: str) -> CopyResult:
        """The part of a run that needs the lease; whoever tries it again gives the same `run`."""
        return self._under_lease(CopyResult, lambda scene, lease: self._copy(scene, lease, execute, tasks), run, limits)

    def record(self, run: str, since: int) -> RecordedRun:
        """Bring the ledger up to what is committed, and say what of it is of this run, which began at `since`."""
        with self._ends.target.raw() as target, self._ends.source.raw(beside=target) as source:
            return self._record(source, target, run, since)

    def reason_to_rest(self, target: RawClient) -> str | None:
        """Why no run of the flow may copy now, whoever asks for it; None where one may that gets the lease."""
        record = target.run(record_of(self._flow, target))
        return reason_to_leave(self._flow, record, described(self._topology, self._flow))

    def _under_lease(
        self, kind: type[Result], work: Callable[[_Scene, Held], Result], run: str, limits: Limits
    ) -> Result:
        with self._scene(limits) as scene:
            target = scene.sides.target
            ours = described(self._topology, self._flow)
            with held(
                self._flow,
                self._ends.target,
                target,
                run,
                lease_s=self._lease_s,
                ours=ours,
                state=self._state,
                migration=self._migration,
            ) as lease:
                if lease.refused is not None:
                    return kind(self._flow.name, run, skipped=lease.refused)
                try:
                    return work(scene, lease)
                except FencedOrTimedOutError:
                    raise
                except FencedError as overtaken:
                    return kind(self._flow.name, run, skipped=str(overtaken))

    @contextmanager
    def _scene(self, limits: Limits) -> Iterator[_Scene]:
        with self._ends.target.raw() as target, self._ends.source.raw(beside=target) as source:
            sides = Sides(source, source.run(source.metadata()), target, target.run(target.metadata()))
            topics = topics_of_run(self._topology, self._flow, sides, limits)
            refused = compacted_both_ways(self._topology, self._flow, sides, topics)
            left_out = {finding.partition.topic for finding in refused}
            self._create_internal_topics(sides)
            yield _Scene(sides, [topic for topic in topics if topic.name not in left_out], refused, limits)

    def _copy(self, scene: _Scene, lease: Held, execute: Executor, tasks: int) -> CopyResult:
        source, target, limits = scene.sides.source, scene.sides.target, scene.limits
        notes = self._bring_in_step(scene)
        started = time.monotonic()
        since = self._ledger.mark().node.total
        names = [topic.name for topic in scene.topics]
        as_of_ms = time.time_ns() // 1_000_000
        found = target.run(survey(source, target, self._flow, self._policy, names))
        hidden = not_shown(self._topology, self._flow, scene.sides, limits, found.other_twins)
        lanes = lease.record.lanes
        keeper = PositionKeeper(self._flow, lease.holder, lease.record, self._ends.target, target, self._ledger)
        found = replace(found, partitions=keeper.recover(found.partitions))
        anew = started_anew(self._ledger, found.partitions)
        if limits.topics is None:
            found = replace(found, partitions=keeper.renew_if_due(found.partitions))
        found = replace(found, partitions=up_to_time(source, found.partitions, limits.until_ms))
        went = as_it_went(self._topology, self._flow, lease.record)
        back = way_back(went, self._flow, self._ends.source, source, found.partitions)
        if back is not None:
            findings = (*found.findings, *back.findings)
            found = replace(found, partitions=back.bounded(found.partitions), findings=findings)
        begin_at = begins(source, found.partitions, limits)
        planned = plan_of_run(self._flow, found.partitions, lanes, tasks, limits, begin_at)
        # A target that has led, or that others mirror back, has records of its own in the twins.
        alone = self._flow.naming == "prefixed" or not meets_another(went, self._flow, source)
        reports = self._execute(execute, planned, self._orders(planned, found, lease, limits, alone=alone))
        if any(report.outcome is Outcome.FENCED for report in reports) and self._is_held(target, lease.holder):
            reports = held_to_the_end(reports)
        return CopyResult(
            self._flow.name,
            lease.holder.run,
            seconds=time.monotonic() - started,
            partitions=sum(len(task.ranges) for task in planned.tasks),
            left_records=planned.left_records,
            lanes=tuple(reports),
            findings=(
                *scene.refused,
                *hidden,
                *found.findings,
                *anew,
                *planned_findings(planned),
                *(finding for report in reports for finding in report.findings),
            ),
            notes=notes,
            since=since,
            topics={one.pair.source_topic: one.pair.target_topic for task in planned.tasks for one in task.ranges},
            as_of_ms=min(as_of_ms, limits.until_ms or as_of_ms),
        )

    def _record(self, source: RawClient, target: RawClient, run: str, since: int) -> RecordedRun:
        bring_up_to_date(self._ledger, self._flow, self._ends.target, target, set())
        rows = rows_of_run(self._ledger, since, run, (*TOTALLED, *OFFSET_SYNC_COLUMNS))
        at_source = self._flow.offset_syncs_topic_location == "source"
        access, client = (self._ends.source, source) if at_source else (self._ends.target, target)
        return replace(run_totals(rows), notes=write_offset_syncs(self._flow, access, client, rows))

    def _execute(self, execute: Executor, planned: Plan, orders: list[CopyOrder]) -> list[LaneReport]:
        if not orders:
            return []
        if self._show is None:
            return execute(orders)
        ranges = [planned_range for task in planned.tasks for planned_range in task.ranges]
        with watched(self._flow.name, self._ends.target, ranges, self._show):
            return execute(orders)

    def _is_held(self, target: RawClient, holder: Holder) -> bool:
        return target.run(flow_store(self._flow, target).read()).is_leased_to(holder)

    def _create_internal_topics(self, sides: Sides) -> None:
        if state_topic(self._flow.source, self._flow.target) not in sides.target_view.topics:
            moved = reason_to_stay_away(self._flow, self._ledger)
            if moved is not None:
                raise FlowStateError(f"{moved}; nothing was copied")
        principal = principal_of(self._ends.target.settings)
        sides.target.run(
            create_internal_topics(sides.target, self._flow, self._flow.lanes, sides.target_view, principal)
        )

    def _beat(self, source: RawClient, limits: Limits) -> tuple[str, ...]:
        """A heartbeat for this run to bring over; one whose topic is new is brought by the next."""
        return beat_of_run(self._flow, self._ends.source, source) if limits.topics is None else ()

    def _checkpoint(self, limits: Limits) -> tuple[str, ...]:
        """The groups' positions, as often as the flow says; a run of some topics would find the others behind."""
        if limits.topics is not None:
            return ()
        source, target = self._ends.source, self._ends.target
        return Checkpointing(self._topology, self._flow, source, target, self._ledger).run_if_due()

    def _bring_in_step(self, scene: _Scene) -> tuple[str, ...]:
        """Topics, settings and permissions before the first record is copied; what there is to say of them."""
        sync = Sync(self._topology, self._flow, self._ends.source, self._ends.target)
        prepared = sync.prepare(scene.sides, scene.limits.topics)
        return (*prepared.warnings, *(warning.message for warning in prepared.preflight))

    def _orders(self, planned: Plan, found: Survey, lease: Held, limits: Limits, *, alone: bool) -> list[CopyOrder]:
        total = sum(max(task.bytes, 1) for task in planned.tasks)
        shares = {task.lanes[0]: max(task.bytes, 1) / total for task in planned.tasks}
        reading, writing = self._ends.reading.settings, self._ends.writing.settings
        return [
            CopyOrder(
                copy_settings(
                    self._flow,
                    lease.holder,
                    lanes=lease.record.lanes,
                    reading=reading,
                    writing=writing,
                    budget_s=seconds_of_run(self._flow, limits),
                    task=task.lanes[0],
                    throttle_shares=shares,
                    sole_writer=alone and not lease.record.came_home and self._state is State.ACTIVE,
                ),
                task.ranges,
                found.max_batch_bytes,
                dict(reading),
                dict(writing),
            )
            for task in planned.tasks
        ]


def new_run_id() -> str:
    """Sorts by time, and no two are equal."""
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{uuid.uuid4().hex[:8]}"
