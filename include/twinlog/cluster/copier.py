"""Copies a share of a run: several lanes at once, over one connection a broker on either side.

Each lane in turn of its own: fence, then read the flow's state and the positions, then copy. So a task that is tried
again, or one that a newer run has overtaken, starts at the truth or stops; it never guesses from its plan. A lane that
finds itself fenced says so and does not raise: a scheduler would try it again and fence the winner.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from twinlog.cluster.committed import fetch_positions
from twinlog.cluster.flow_store import FlowStore
from twinlog.cluster.flow_watch import FlowWatch
from twinlog.cluster.foreign import Suspicion, foreign_finding
from twinlog.cluster.inventory import settled_offsets
from twinlog.cluster.lane import Lane, LaneSettings
from twinlog.cluster.lane_start import leader_of, replaced, starting_target
from twinlog.cluster.log_offsets import OffsetAt
from twinlog.cluster.metadata import ClusterMetadata
from twinlog.cluster.raw import RawClient
from twinlog.cluster.signal import Signal
from twinlog.cluster.source_partition import FetchSettings, SourcePartitionState
from twinlog.cluster.source_reader import SourceReader
from twinlog.cluster.target_partition import TargetPartition
from twinlog.cluster.task_shares import TaskShares
from twinlog.cluster.transaction import NO_PRODUCER, TransactionalWriter
from twinlog.errors import ClusterUnreachableError, FencedError, PartitionRefusedError, TwinlogError
from twinlog.model.figures import Figures
from twinlog.model.findings import Finding, FindingKind
from twinlog.model.flow_state import Holder
from twinlog.model.lanes import journal_topic, position_group, state_topic, transactional_id
from twinlog.model.offsets import TopicPartition
from twinlog.model.plan import PlannedRange

_LOG = logging.getLogger(__name__)

LEAST_READ_AHEAD_BYTES = 4 * 1024 * 1024


class Outcome(StrEnum):
    """How a lane's work ended."""

    DONE = "done"
    FENCED = "fenced"
    """A later writer has the lane; this one stopped without harm."""
    STOPPED = "stopped"
    """The flow may not run now, or another run holds it."""
    FAILED = "failed"
    """Tried as often as allowed; the next run goes on where this one committed last."""


@dataclass(frozen=True, slots=True)
class CopySettings:
    """Everything about a run that its tasks share. Values only: it travels to the executors."""

    flow: str
    source: str
    target: str
    run: str
    owner: str
    """Which try of the run gave the order: an order of an earlier one is not carried out."""
    lanes: int
    """Into how many lanes the plan has cut the flow."""
    transaction_bytes: int
    transaction_s: float
    transaction_timeout_ms: int
    retries: int
    retry_backoff_s: float
    retry_backoff_max_s: float
    in_flight: int
    max_request_bytes: int
    budget_s: float
    task: int
    """The first of this task's lanes, by which it is known."""
    throttle_shares: Mapping[int, float]
    """Each task's part of the flow's throttle; together they are 1. The rate itself is kept on the target."""
    fetch: FetchSettings
    sole_writer: bool = True
    """Nobody but the flow writes to the target topics, so records of others are worth a finding."""
    journal_max_batch_bytes: int = 900_000

    @property
    def group(self) -> str:
        return position_group(self.flow)


@dataclass(frozen=True, slots=True)
class LaneReport:
    """What became of one lane in one run."""

    lane: int
    outcome: Outcome
    reason: str
    figures: Figures
    findings: tuple[Finding, ...]


@dataclass(slots=True)
class _LaneWork:
    """What is still to do in one lane, and what is known of it over all attempts."""

    lane: int
    writer: TransactionalWriter
    ranges: dict[TopicPartition, PlannedRange]
    findings: list[Finding] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)
    suspicions: dict[TopicPartition, Suspicion] = field(default_factory=dict)

    def refuse(self, refused: PartitionRefusedError) -> bool:
        """Leave out the partition that can't go on; false if it is none of the flow's own."""
        for source, planned in self.ranges.items():
            if planned.pair.target == refused.partition:
                del self.ranges[source]
                self.findings.append(Finding(FindingKind(refused.kind), source, planned.range.start, str(refused)))
                return True
        return False

    def suspect(self, partitions: Iterable[TargetPartition]) -> None:
        for state in partitions:
            if state.suspicion is not None:
                known = self.suspicions.setdefault(state.pair.target, state.suspicion)
                known.widen(state.suspicion.start, state.suspicion.end)


class Copier:
    """Runs the lanes of one task."""

    def __init__(self, source: RawClient, target: RawClient, settings: CopySettings) -> None:
        """`target` and `source` share one loop."""
        self._source = source
        self._target = target
        self._settings = settings
        self._deadline = time.monotonic() + settings.budget_s
        store = FlowStore(target, settings.flow, state_topic(settings.source, settings.target))
        self._shares = TaskShares(
            target,
            group=settings.group,
            journal=journal_topic(settings.source, settings.target),
            holder=Holder(settings.run, settings.owner),
            task=settings.task,
            shares=settings.throttle_shares,
        )
        self._watch = FlowWatch(
            target,
            store,
            flow=settings.flow,
            holder=Holder(settings.run, settings.owner),
            lanes=settings.lanes,
            shares=self._shares,
        )

    def copy(self, ranges: Iterable[PlannedRange], max_batch_bytes: Mapping[str, int]) -> list[LaneReport]:
        """Copy the ranges; `max_batch_bytes` is the largest batch that each target topic takes."""
        lanes: dict[int, _LaneWork] = {}
        for planned in ranges:
            work = lanes.setdefault(planned.lane, _LaneWork(planned.lane, self._writer(planned.lane), {}))
            work.ranges[planned.pair.source] = planned
        share = self._settings.fetch.read_ahead_bytes // max(1, len(lanes))
        fetch = replace(self._settings.fetch, read_ahead_bytes=max(share, LEAST_READ_AHEAD_BYTES))
        return self._target.run(self._run_lanes(list(lanes.values()), fetch, max_batch_bytes))

    async def _run_lanes(
        self, lanes: list[_LaneWork], fetch: FetchSettings, max_batch_bytes: Mapping[str, int]
    ) -> list[LaneReport]:
        watching = self._target.spawn(self._watch.run())
        try:
            reports = await self._target.gather(self._run_lane(work, fetch, max_batch_bytes) for work in lanes)
        finally:
            self._watch.end()
            await watching
        if not any(report.outcome in (Outcome.FENCED, Outcome.STOPPED) for report in reports):
            await self._shares.give_away()
        return reports

    async def _run_lane(self, work: _LaneWork, fetch: FetchSettings, max_batch_bytes: Mapping[str, int]) -> LaneReport:
        failures = 0
        while True:
            committed_before = work.figures.transactions
            try:
                return await self._attempt(work, fetch, max_batch_bytes)
            except PartitionRefusedError as refused:
                if not work.refuse(refused):
                    await self._roll_back(work.writer, refused)
                    return _report(work, Outcome.FAILED, str(refused))
            except TwinlogError as failure:
                if isinstance(failure, FencedError) and not failure.retriable:
                    return _report(work, Outcome.FENCED, str(failure))
                failures = 1 if work.figures.transactions > committed_before else failures + 1
                if not failure.retriable or failures > self._settings.retries or time.monotonic() >= self._deadline:
                    await self._roll_back(work.writer, failure)
                    return _report(work, Outcome.FAILED, str(failure))
                work.figures.retries += 1
                backoff_s = self._settings.retry_backoff_s * 2 ** (failures - 1)
                await self._target.pause(min(backoff_s, self._settings.retry_backoff_max_s))

    async def _roll_back(self, writer: TransactionalWriter, failure: TwinlogError) -> None:
        """End what is open, which readers of the twins wait for; a target that does not answer ends it by itself."""
        if isinstance(failure, ClusterUnreachableError):
            return
        try:
            await writer.abort()
        except TwinlogError as refused:
            _LOG.debug("%s was not rolled back: %s", writer.transactional_id, refused)

    async def _attempt(self, work: _LaneWork, fetch: FetchSettings, max_batch_bytes: Mapping[str, int]) -> LaneReport:
        if work.writer.producer_id == NO_PRODUCER:
            # The first opening fences whoever is there: an order that is out of date must not come so far.
            await self._watch.read()
            if self._watch.stop is not None:
                return _report(work, Outcome.STOPPED, self._watch.stop)
        await work.writer.open()
        await self._watch.read()
        if self._watch.stop is not None:
            return _report(work, Outcome.STOPPED, self._watch.stop)
        journal = TopicPartition(journal_topic(self._settings.source, self._settings.target), work.lane)
        twins = {planned.pair.target_topic for planned in work.ranges.values()}
        metadata = await self._target.metadata({*twins, journal.topic})
        for planned in list(work.ranges.values()):
            refused = replaced(planned, metadata, self._target.alias)
            if refused is not None:
                work.refuse(refused)
        sources, targets = await self._begin(work, metadata, max_batch_bytes)
        arrived = Signal()
        reader = SourceReader(self._source, sources, fetch, arrived, work.figures)
        lane = Lane(
            self._target,
            work.writer,
            reader,
            arrived=arrived,
            settings=self._lane_settings(journal, leader_of(metadata, journal)),
            watch=self._watch,
            targets=targets,
            figures=work.figures,
        )
        reading = self._target.spawn(reader.run())
        self._watch.wake(arrived)
        try:
            await lane.copy()
        finally:
            reader.close()
            await reading
            self._watch.let_sleep(arrived)
            work.suspect(targets)
        work.findings.extend(reader.refused)
        await self._look_for_others(work, metadata)
        if self._watch.stop is not None and not lane.finished:
            return _report(work, Outcome.STOPPED, self._watch.stop)
        return _report(work, Outcome.DONE, "")

    async def _begin(
        self, work: _LaneWork, metadata: ClusterMetadata, max_batch_bytes: Mapping[str, int]
    ) -> tuple[list[SourcePartitionState], list[TargetPartition]]:
        """Both ends of every partition that still has something to copy, from the committed position on."""
        wanted = [planned.pair.target for planned in work.ranges.values()]
        positions = await fetch_positions(self._target, self._settings.group, wanted)
        listing = await settled_offsets(self._target, metadata, wanted, OffsetAt.LOG_END)
        if listing.failed:
            partition, error = next(iter(listing.failed.items()))
            raise ClusterUnreachableError(
                f"cluster {self._target.alias}: the end of {partition} can't be looked at: {error}"
            )
        sources, targets = [], []
        for planned in work.ranges.values():
            twin = planned.pair.target
            target = starting_target(planned, positions.get(twin), metadata, listing.offsets[twin])
            if target.position < planned.range.end or target.touched:
                limit = max_batch_bytes[planned.pair.target_topic]
                sources.append(
                    SourcePartitionState(
                        planned.pair,
                        target.position,
                        planned.range.end,
                        limit,
                        target.leader_epoch,
                        returned=deque(planned.returned),
                    )
                )
                targets.append(target)
        return sources, targets

    async def _look_for_others(self, work: _LaneWork, metadata: ClusterMetadata) -> None:
        """A finding for each partition where offsets were given to others than us."""
        if not self._settings.sole_writer:
            return
        for target, suspicion in work.suspicions.items():
            leader = leader_of(metadata, target)
            found = await foreign_finding(self._target, leader, suspicion, work.writer.producer_id)
            if found is not None:
                work.findings.append(found)
        work.suspicions.clear()

    def _writer(self, lane: int) -> TransactionalWriter:
        return TransactionalWriter(
            self._target,
            transactional_id(self._settings.flow, lane),
            timeout_ms=self._settings.transaction_timeout_ms,
            retries=self._settings.retries,
        )

    def _lane_settings(self, journal: TopicPartition, journal_leader: int | None) -> LaneSettings:
        settings = self._settings
        return LaneSettings(
            flow=settings.flow,
            run=settings.run,
            group=settings.group,
            journal=journal,
            journal_leader=journal_leader,
            journal_max_batch_bytes=settings.journal_max_batch_bytes,
            transaction_bytes=settings.transaction_bytes,
            transaction_s=settings.transaction_s,
            in_flight=settings.in_flight,
            max_request_bytes=settings.max_request_bytes,
            deadline=self._deadline,
        )


def _report(work: _LaneWork, outcome: Outcome, reason: str) -> LaneReport:
    figures = replace(work.figures, quota_s=work.figures.quota_s + work.writer.quota_s)
    return LaneReport(work.lane, outcome, reason, figures, tuple(work.findings))
