"""The backfill of a migration: ordinary runs with large budgets, the most urgent topics first, until little is left.

    round     look at all that is left  ->  wait where nothing may be copied now  ->  one run  ->  note how far it came

What always holds:
- every partition has its position before the first large run, so whoever copies next, however soon, begins there;
- a run is one like any other: positions, journal and records commit together, so the live mirroring that follows goes
  on at exactly the next offset, and whatever ends a backfill costs what was not committed;
- topics of a rank are copied together with all that come before it, so that what was caught up stays so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from twinlog.cluster.copy_order import Executor
from twinlog.cluster.raw import RawClient
from twinlog.errors import CopyIncompleteError
from twinlog.intake.extensions import naming_of
from twinlog.ledger.store import Ledger
from twinlog.model.backfill import Priorities
from twinlog.model.blackouts import Blackouts
from twinlog.model.migration import Migration
from twinlog.model.offsets import TopicPartition
from twinlog.model.plan import Partitions
from twinlog.model.topology import Flow, Topology
from twinlog.operations.backfill_progress import Clock, Left
from twinlog.operations.flow_gate import record_of
from twinlog.operations.migration_keeping import change, migration_of
from twinlog.operations.mirror import Mirror
from twinlog.operations.mirror_result import MirrorResult
from twinlog.operations.position_keeping import renewal_due
from twinlog.operations.progress import Progress, Show
from twinlog.operations.run_scope import NO_LIMITS, Ends, Limits, begins, topics_of_run
from twinlog.operations.survey import survey
from twinlog.operations.taking_turns import Wait, run_in_turn
from twinlog.operations.twin_planning import Sides

RUN_BYTES = 64 * 1024**3
RUN_SECONDS = 1800.0
NO_PROGRESS_ROUNDS = 3
LOOKS_AGAIN_S = 600.0
"""In a blackout, whether it still holds."""


@dataclass(frozen=True, slots=True)
class Backfilled:
    """What a backfill, or the rest of one, copied."""

    runs: int = 0
    records: int = 0
    bytes: int = 0
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()

    def plus(self, run: MirrorResult) -> Backfilled:
        said = tuple(dict.fromkeys((*self.warnings, *run.warnings)))
        recorded = run.recorded
        return Backfilled(
            self.runs + 1,
            self.records + recorded.records,
            self.bytes + recorded.bytes,
            self.seconds + run.seconds,
            said,
        )


class Backfilling:
    """The backfill of one migration; `tell` takes a sentence for people, `wait` lets seconds pass."""

    def __init__(
        self,
        topology: Topology,
        flow: Flow,
        ends: Ends,
        ledger: Ledger,
        migration: Migration,
        *,
        show: Show | None = None,
        tell: Callable[[str], None] = lambda _: None,
        wait: Wait = time.sleep,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
        run_bytes: int = RUN_BYTES,
        run_seconds: float = RUN_SECONDS,
    ) -> None:
        self._topology = topology
        self._flow = flow
        self._ends = ends
        self._migration = migration
        self._show = show
        self._tell = tell
        self._wait = wait
        self._now_ms = now_ms
        self._run_bytes = run_bytes
        self._run_seconds = run_seconds
        watched = None if show is None else self._look_on
        self._mirror = Mirror(topology, flow, ends, ledger, show=watched, migration=migration.id)
        self._clock = Clock(migration.bytes)

    def run(self, execute: Executor, *, tasks: int) -> Backfilled:
        """Copy until little is left."""
        done = Backfilled()
        rank, idle = 0, 0
        if not self._migration.positioned:
            done = done.plus(self._position(execute, tasks))
        while True:
            left = self._left()
            ranks = Priorities(self._migration.priority).ranks(left)
            names = [topic for members in ranks[: rank + 1] for topic in members]
            now = sum_of(left[topic] for topic in names)
            if not now.over(self._clock.rate):
                rank += 1
                if rank >= len(ranks):
                    return done
                continue
            self._wait_out()
            if self._renewal_due():
                done = done.plus(self._run(execute, tasks, self._limits(max_bytes=0)))
            self._clock.begin(sum_of(left.values()))
            limits = self._limits(topics=frozenset(names), max_seconds=self._seconds_open())
            ran = self._run(execute, tasks, limits)
            self._note(ran)
            done = done.plus(ran)
            idle = 0 if ran.recorded.records or ran.recorded.gaps else idle + 1
            if idle == NO_PROGRESS_ROUNDS:
                raise CopyIncompleteError(
                    f"{self._flow.name}: {now.records:,} records are left, and the last {idle} runs copied none: "
                    + ("; ".join(ran.failures or ran.warnings) or "is the throttle too low?")
                )

    def _position(self, execute: Executor, tasks: int) -> MirrorResult:
        """Give every partition its position, which a run does that may copy nothing."""
        self._wait_out()
        ran = self._run(execute, tasks, self._limits(max_bytes=0))
        self._keep(lambda migration: replace(migration, positioned=True, bytes=migration.bytes + ran.recorded.bytes))
        return ran

    def _run(self, execute: Executor, tasks: int, limits: Limits) -> MirrorResult:
        target = self._ends.target
        return run_in_turn(
            self._mirror, self._flow, target, execute, self._tell, self._wait, tasks=tasks, limits=limits
        )

    def _limits(
        self, *, topics: frozenset[str] | None = None, max_bytes: int | None = None, max_seconds: float | None = None
    ) -> Limits:
        return Limits(
            self._run_bytes if max_bytes is None else max_bytes,
            max_seconds or self._run_seconds,
            topics,
            from_ms=self._migration.from_ms,
            from_offsets=self._migration.begins(),
            own_budget=True,
        )

    def _note(self, ran: MirrorResult) -> None:
        self._clock.end(ran)
        self._keep(lambda migration: replace(migration, bytes=migration.bytes + ran.recorded.bytes))
        self._tell(
            f"{self._flow.name}: {ran.recorded.records:,} records, {ran.recorded.bytes / 1e6:,.1f} MB in run {ran.run}"
        )

    def _keep(self, decide: Callable[[Migration], Migration]) -> None:
        with self._ends.target.raw() as target:
            self._migration = change(self._flow, target, self._migration.id, decide)

    def _blackouts(self) -> Blackouts:
        """As they are now: they may be changed from elsewhere between two runs."""
        return Blackouts.parse(self._migration.blackouts)

    def _wait_out(self) -> None:
        """Until no blackout holds any more."""
        told = None
        while (ends_ms := self._blackouts().ends_at_ms(self._now_ms())) is not None:
            if ends_ms != told:
                self._tell(f"{self._flow.name}: nothing is backfilled before {_clock_time(ends_ms)}")
                told = ends_ms
            self._wait(min((ends_ms - self._now_ms()) / 1000, LOOKS_AGAIN_S))
            self._migration = migration_of(self._flow, self._ends.target) or self._migration

    def _seconds_open(self) -> float:
        """How long a run may take: it commits what it has when a blackout begins."""
        begins_ms = self._blackouts().next_at_ms(self._now_ms())
        if begins_ms is None:
            return self._run_seconds
        return max(min((begins_ms - self._now_ms()) / 1000, self._run_seconds), 1.0)

    def _renewal_due(self) -> bool:
        """Positions of topics that wait for their turn must not be forgotten meanwhile; runs of some renew none."""
        with self._ends.target.raw() as target:
            return target.run(renewal_due(target, target.run(record_of(self._flow, target))))

    def _left(self) -> dict[str, Left]:
        """By topic of the source."""
        with self._ends.target.raw() as target, self._ends.source.raw(beside=target) as source:
            return left_of(self._topology, self._flow, source, target, self._limits())

    def _look_on(self, progress: Progress) -> None:
        if self._show is not None:
            self._show(self._clock.total(progress, self._now_ms(), self._blackouts()))


def left_of(
    topology: Topology, flow: Flow, source: RawClient, target: RawClient, limits: Limits = NO_LIMITS
) -> dict[str, Left]:
    """What of each topic is not copied yet; `limits` say where partitions without a position begin."""
    sides = Sides(source, source.run(source.metadata()), target, target.run(target.metadata()))
    topics = [topic.name for topic in topics_of_run(topology, flow, sides, NO_LIMITS)]
    found = target.run(survey(source, target, flow, naming_of(flow), topics)).partitions
    begin_at = begins(source, found, limits)
    left = dict.fromkeys(topics, Left(0, 0.0))
    for row, records in _waiting(found, begin_at):
        topic = found.pairs[row].source_topic
        size = records * max(found.record_bytes[row], 1.0)
        left[topic] = Left(left[topic].records + records, left[topic].bytes + size)
    return left


def _waiting(found: Partitions, begin_at: Mapping[TopicPartition, int]) -> Iterator[tuple[int, int]]:
    for row, pair in enumerate(found.pairs):
        position = found.positions[row]
        start = begin_at.get(pair.source, found.log_starts[row]) if position is None else position.offset
        yield row, max(found.last_stable[row] - max(start, found.log_starts[row]), 0)


def sum_of(left: Iterable[Left]) -> Left:
    """All of it together."""
    chosen = list(left)
    return Left(sum(one.records for one in chosen), sum(one.bytes for one in chosen))


def _clock_time(at_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at_ms / 1000))
