"""One whole run of a flow: prepare the target, plan, copy, record, checkpoint.

A run holds the flow's lease from before it prepares until it has checkpointed; without the lease it ends as skipped and
has changed nothing but, before the first run, created the flow's internal topics. Whatever ends a run early, the next
one goes on from the committed positions.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.copier import LaneReport, Outcome
from twinlog.cluster.copy_order import CopyOrder, Executor
from twinlog.cluster.metadata import ClusterMetadata, Topic
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import principal_of
from twinlog.errors import FencedError, FencedOrTimedOutError
from twinlog.intake.extensions import naming_of, topics_of
from twinlog.ledger.store import Ledger
from twinlog.model.budget import Budget
from twinlog.model.flow_state import Holder
from twinlog.model.lanes import lane_of
from twinlog.model.plan import Decision, Plan, Rules, StartAt, plan
from twinlog.model.selection import TopicSelection
from twinlog.model.topology import Flow, Topology
from twinlog.operations.checkpoint import Checkpointing
from twinlog.operations.copy_settings import copy_settings
from twinlog.operations.directions import opposite_flow
from twinlog.operations.heartbeat import beat_of_run
from twinlog.operations.internal_topics import create_internal_topics
from twinlog.operations.lease import LEASE_S, Held, flow_store, held
from twinlog.operations.mirror_result import MirrorResult, held_to_the_end, planned_findings
from twinlog.operations.offset_syncs import COLUMNS as OFFSET_SYNC_COLUMNS
from twinlog.operations.offset_syncs import write_offset_syncs
from twinlog.operations.position_keeping import PositionKeeper
from twinlog.operations.progress import Show, watched
from twinlog.operations.recording import TOTALLED, bring_up_to_date, rows_of_run, run_totals
from twinlog.operations.started_anew import started_anew
from twinlog.operations.survey import Survey, survey
from twinlog.operations.sync import Sync
from twinlog.operations.twin_planning import Sides
from twinlog.operations.way_back import compacted_both_ways, way_back


@dataclass(frozen=True)
class Ends:
    """How a run reaches its two clusters: to look around and administer, and to copy."""

    source: ClusterAccess
    target: ClusterAccess
    reading: ClusterAccess
    """The source as a consumer's settings have it."""
    writing: ClusterAccess
    """The target as a producer's settings have it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run is asked to stay within, beyond what the flow says; None asks for nothing more."""

    max_bytes: int | None = None
    max_seconds: float | None = None
    topics: frozenset[str] | None = None


NO_LIMITS = Limits()


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
    ) -> None:
        """`show` is called every second of copying with how far it has come."""
        self._topology = topology
        self._flow = flow
        self._ends = ends
        self._ledger = ledger
        self._show = show
        self._lease_s = lease_s
        self._policy = naming_of(flow)

    def run(self, execute: Executor, *, tasks: int, limits: Limits = NO_LIMITS, run: str | None = None) -> MirrorResult:
        """Copy what is new, once; at most `tasks` orders are given to `execute`."""
        run = run or new_run_id()
        with self._ends.target.raw() as target, self._ends.source.raw(beside=target) as source:
            sides = Sides(source, source.run(source.metadata()), target, target.run(target.metadata()))
            topics = self._topics(sides.source_view, limits)
            refused = compacted_both_ways(self._topology, self._flow, self._ends.source, source, topics)
            left_out = {finding.partition.topic for finding in refused}
            topics = [topic for topic in topics if topic.name not in left_out]
            self._create_internal_topics(sides)
            with held(self._flow, self._ends.target, target, run, lease_s=self._lease_s) as lease:
                if lease.refused is not None:
                    return MirrorResult(self._flow.name, run, skipped=lease.refused)
                try:
                    notes = (*self._beat(source, limits), *self._bring_in_step(sides, limits))
                    result = self._copy(source, target, execute, topics, lease, tasks, limits)
                    notes = (*notes, *result.notes, *self._checkpoint(limits))
                    return replace(result, notes=notes, findings=(*refused, *result.findings))
                except FencedOrTimedOutError:
                    raise
                except FencedError as overtaken:
                    return MirrorResult(self._flow.name, run, skipped=str(overtaken))

    def _copy(  # noqa: PLR0917 - the run's whole context, each once
        self,
        source: RawClient,
        target: RawClient,
        execute: Executor,
        topics: Sequence[Topic],
        lease: Held,
        tasks: int,
        limits: Limits,
    ) -> MirrorResult:
        started = time.monotonic()
        before = self._ledger.mark()
        found = target.run(survey(source, target, self._flow, self._policy, [topic.name for topic in topics]))
        lanes = lease.record.lanes
        keeper = PositionKeeper(self._flow, lease.holder, lease.record, self._ends.target, target, self._ledger)
        found = replace(found, partitions=keeper.recover(found.partitions))
        anew = started_anew(self._ledger, found.partitions)
        if limits.topics is None:
            found = replace(found, partitions=keeper.renew_if_due(found.partitions))
        back = way_back(self._topology, self._flow, self._ends.source, source, found.partitions)
        if back is not None:
            findings = (*found.findings, *back.findings)
            found = replace(found, partitions=back.bounded(found.partitions), findings=findings)
        planned = self._plan(found, lanes, tasks, limits)
        if back is not None:
            planned = back.applied(planned)
        reports = self._execute(execute, planned, self._orders(planned, found, lanes, limits, lease.holder))
        twins = {pair.target for pair in found.partitions.pairs}
        bring_up_to_date(self._ledger, self._flow, self._ends.target, target, twins)
        copied = rows_of_run(self._ledger, before, lease.holder.run, (*TOTALLED, *OFFSET_SYNC_COLUMNS))
        at_source = self._flow.offset_syncs_topic_location == "source"
        access, client = (self._ends.source, source) if at_source else (self._ends.target, target)
        if any(report.outcome is Outcome.FENCED for report in reports) and self._is_held(target, lease.holder):
            reports = held_to_the_end(reports)
        return MirrorResult(
            self._flow.name,
            lease.holder.run,
            seconds=time.monotonic() - started,
            partitions=sum(len(task.ranges) for task in planned.tasks),
            left_records=planned.left_records,
            lanes=tuple(reports),
            findings=(
                *found.findings,
                *anew,
                *planned_findings(planned),
                *(finding for report in reports for finding in report.findings),
            ),
            recorded=run_totals(copied),
            notes=write_offset_syncs(self._flow, access, client, copied),
        )

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

    def _topics(self, source: ClusterMetadata, limits: Limits) -> list[Topic]:
        """The source's topics that the flow takes, of those that this run is limited to."""
        named = {other.name: naming_of(other) for other in self._topology.flows.values() if other.naming_policy}
        selection = TopicSelection(self._topology, self._flow, named, topics_of(self._flow))
        return [
            topic
            for topic in source.topics.values()
            if selection.left_out(topic.name) is None and (limits.topics is None or topic.name in limits.topics)
        ]

    def _create_internal_topics(self, sides: Sides) -> None:
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

    def _bring_in_step(self, sides: Sides, limits: Limits) -> tuple[str, ...]:
        """Topics, settings and permissions before the first record is copied; what there is to say of them."""
        sync = Sync(self._topology, self._flow, self._ends.source, self._ends.target)
        prepared = sync.prepare(sides, limits.topics)
        return (*prepared.warnings, *(warning.message for warning in prepared.preflight))

    def _plan(self, found: Survey, lanes: int, tasks: int, limits: Limits) -> Plan:
        flow = self._flow
        wanted = [flow.budget_bytes, limits.max_bytes]
        return plan(
            found.partitions,
            lambda pair: lane_of(pair.target, lanes),
            tasks,
            Budget(
                bytes=min(size for size in wanted if size is not None),
                records=flow.budget_records,
                seconds=self._seconds(limits),
                bytes_per_second=flow.throttle * 1e6 if flow.throttle else None,
            ),
            Rules(StartAt(flow.topics_from), Decision(flow.on_expired)),
        )

    def _orders(self, planned: Plan, found: Survey, lanes: int, limits: Limits, holder: Holder) -> list[CopyOrder]:
        total = sum(task.bytes for task in planned.tasks) or 1
        reading, writing = self._ends.reading.settings, self._ends.writing.settings
        return [
            CopyOrder(
                copy_settings(
                    self._flow,
                    holder,
                    lanes=lanes,
                    reading=reading,
                    writing=writing,
                    budget_s=self._seconds(limits),
                    throttle_share=max(task.bytes, 1) / total,
                    sole_writer=self._flow.naming == "prefixed" or opposite_flow(self._topology, self._flow) is None,
                ),
                task.ranges,
                found.max_batch_bytes,
                dict(reading),
                dict(writing),
            )
            for task in planned.tasks
        ]

    def _seconds(self, limits: Limits) -> float:
        return min(self._flow.budget_seconds, limits.max_seconds or float("inf"))


def new_run_id() -> str:
    """Sorts by time, and no two are equal."""
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{uuid.uuid4().hex[:8]}"
