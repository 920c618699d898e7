"""Plans a run: which offsets of which partitions are copied, by which lane, in which Spark task.

What always holds of a plan:

- a range begins where the position says, or, where there is none that counts, at the log's start (or its end);
- no partition waits for another: a budget that is too small for all is shared evenly, and what a small partition
  does not need goes to the others;
- a lane is in one task, and what is heaviest is given out first, to the task that has least so far;
- whatever keeps a range from simply continuing is a finding; nothing is skipped without one.

Partitions come in as columns, parallel sequences with one place a partition, since an estate has tens of
thousands: the answers of a few batched requests are laid side by side and never looked up one by one.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from twinlog.model.budget import NO_LIMIT, Budget, grant
from twinlog.model.offsets import PartitionPair, Range, Span, TopicPartition, offsets_among
from twinlog.model.positions import Position


class FindingKind(StrEnum):
    """What a plan met that is not the ordinary going on."""

    EXPIRED = "expired"
    """The source's retention removed offsets `[start, end)` before they were copied."""
    SOURCE_RECREATED = "source recreated"
    """The source topic is another one than the position was made with; it is copied from its beginning."""
    TARGET_RECREATED = "target recreated"
    """The target topic is another one than the position was made with; it is filled from the beginning."""
    SOURCE_TRUNCATED = "source truncated"
    """The source lost offsets `[start, end)` that had been copied, as an unclean leader election does."""
    TARGET_TRUNCATED = "target truncated"
    """The target lost offsets `[start, end)` that had been written."""


class Decision(StrEnum):
    """Whether a partition with a finding is copied in this run."""

    CONTINUE = "continue"
    STOP = "stop"


class StartAt(StrEnum):
    """Where a partition without a position begins."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Finding:
    """One partition's finding, and what the run does about it."""

    kind: FindingKind
    pair: PartitionPair
    start: int
    end: int
    decision: Decision
    lost: int = 0
    """Of a source topic that is gone: the offsets from `start` on that are known to have never been copied."""
    returned: int = 0
    """Of the offsets that expired, those that had come from the target in the first place."""

    @property
    def message(self) -> str:
        pair, start, end = self.pair, self.start, self.end
        gone = f"; of that one at least {self.lost} offsets, from {start} on, were never copied and are lost"
        are_lost = "they were copied and are lost"
        if self.returned:
            are_lost = (
                f"this flow came to them; {self.returned} of them had come from the target, the other "
                f"{end - start - self.returned}, markers of those transactions among them, are lost"
            )
        says = {
            FindingKind.EXPIRED: f"{pair.source}: offsets {start} to {end - 1} were removed by retention before "
            f"{are_lost}",
            FindingKind.SOURCE_RECREATED: f"{pair.source}: the topic was deleted and created again; the position "
            f"{start} belonged to the earlier one, copying begins at {end}{gone if self.lost else ''}",
            FindingKind.TARGET_RECREATED: f"{pair.target}: the topic was deleted and created again; the position "
            f"{start} belonged to the earlier one, copying begins at {end}",
            FindingKind.SOURCE_TRUNCATED: f"{pair.source}: the log ends at {start}, before the position {end}: "
            "records that were copied are gone from the source, as after an unclean leader election; compare "
            "with `twinlog reconcile`, then run `twinlog failback --mode rebuild` or reset the position",
            FindingKind.TARGET_TRUNCATED: f"{pair.target}: the log ends at {start}, before the end {end} that was "
            "written: copied records are gone from the target; compare with `twinlog reconcile`",
        }
        stopped = "; the partition is left out until then" if self.decision is Decision.STOP else ""
        return says[self.kind] + stopped


@dataclass(frozen=True, slots=True)
class Partitions:
    """The estate of one flow at one moment: parallel columns, one place a partition."""

    pairs: Sequence[PartitionPair]
    """With the ids that the topics have now."""
    positions: Sequence[Position | None]
    log_starts: Sequence[int]
    last_stable: Sequence[int]
    """The source's last stable offsets: nothing at or after them is decided yet."""
    target_ends: Sequence[int]
    """The target's log ends."""
    record_bytes: Sequence[float]
    """Estimated size of a record; an estimate only balances and bounds, it decides nothing else."""
    returned: Sequence[Sequence[Span]] = ()
    """What the other direction mirrored in, from the position on; none of it where nobody says."""

    def __post_init__(self) -> None:
        if not self.returned:
            object.__setattr__(self, "returned", [()] * len(self.pairs))
        lengths = {len(getattr(self, name)) for name in self.__slots__}
        if len(lengths) != 1:
            raise ValueError(f"columns of different lengths: {sorted(lengths)}")

    def where(self, keeps: Callable[[PartitionPair], bool]) -> Partitions:
        """Only the partitions that are to be kept."""
        kept = [place for place, pair in enumerate(self.pairs) if keeps(pair)]
        if len(kept) == len(self.pairs):
            return self
        return Partitions(*([getattr(self, name)[place] for place in kept] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Rules:
    """What the flow says about the unusual."""

    start_at: StartAt = StartAt.EARLIEST
    on_expired: Decision = Decision.CONTINUE
    on_recreated: Decision = Decision.CONTINUE
    begin_at: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where partitions of the source begin that have no position, whatever `start_at` says of the others."""


@dataclass(frozen=True, slots=True)
class PlannedRange:
    """A range to copy, and the lane that copies it."""

    pair: PartitionPair
    range: Range
    expired: int
    """Offsets right before the range that retention removed, be they lost or not: its first segment's gap."""
    lane: int
    bytes: int
    """As estimated."""
    seen_end: int
    """How far the source is ready; behind the range's end lies what did not fit the budget."""
    returned: tuple[Span, ...] = ()
    """What the other direction mirrored in, in order: it is not sent back to where it came from."""
    skipped: int = 0
    """Offsets right before the range that copying was asked to leave out."""


@dataclass(frozen=True, slots=True)
class Task:
    """What one Spark task copies: whole lanes."""

    lanes: tuple[int, ...]
    ranges: tuple[PlannedRange, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """One run."""

    tasks: tuple[Task, ...]
    findings: tuple[Finding, ...]
    left_records: int
    """Offsets that were ready to be copied and did not fit the budget."""


def plan(
    partitions: Partitions,
    lane_of: Callable[[PartitionPair], int],
    tasks: int,
    budget: Budget = NO_LIMIT,
    rules: Rules = Rules(),
) -> Plan:
    """The next run's plan; at most `tasks` tasks, each with something to do."""
    findings: list[Finding] = []
    rows: list[int] = []
    starts: list[int] = []
    expired: list[int] = []
    ready: list[int] = []
    added = _added(partitions)
    for row, pair in enumerate(partitions.pairs):
        start, lost, finding = _start(partitions, row, pair, added, rules)
        if finding is not None:
            findings.append(finding)
            if finding.decision is Decision.STOP:
                continue
        waiting = partitions.last_stable[row] - start
        # Worth a range even if nothing follows: the position has to move past what expired, and a partition that has
        # none of its own yet is to get one, or what arrives until the next run would be taken for old.
        if waiting > 0 or lost or not _has_position(partitions.positions[row], pair):
            rows.append(row)
            starts.append(start)
            expired.append(lost)
            ready.append(max(waiting, 0))
    sizes = [max(partitions.record_bytes[row], 1.0) for row in rows]
    granted = grant(ready, sizes, budget)
    ranges = []
    for row, start, lost, count, size in zip(rows, starts, expired, granted, sizes, strict=True):
        pair = partitions.pairs[row]
        ranges.append(
            PlannedRange(
                pair,
                Range(pair.source, start, start + count),
                lost,
                lane_of(pair),
                int(count * size),
                max(partitions.last_stable[row], start),
                # From before the start on: a lane may begin at a position that lies behind the plan's.
                _returned(partitions.returned[row], start - lost, start + count),
                skipped=_skipped(partitions, row, start, rules),
            )
        )
    return Plan(_spread(ranges, tasks), tuple(findings), sum(ready) - sum(granted))


def _start(
    partitions: Partitions, row: int, pair: PartitionPair, added: Mapping[UUID, int], rules: Rules
) -> tuple[int, int, Finding | None]:
    """Where a partition goes on, how many offsets before that expired, and what is to be said about it."""
    position, log_start, end = partitions.positions[row], partitions.log_starts[row], partitions.last_stable[row]
    if position is None:
        # What a partition holds that was added to a mirrored topic is new, whatever `start_at` says.
        is_new = pair.partition >= added.get(pair.target_topic_id, pair.partition + 1)
        begin = end if rules.start_at is StartAt.LATEST and not is_new else log_start
        asked = rules.begin_at.get(pair.source, begin)
        return min(max(asked, log_start), max(end, log_start)), 0, None
    offset = position.offset
    # A topic made anew is copied from its beginning whatever `start_at` says: all of it is new.
    if not _has_position(position, pair):
        new_source = position.source_topic_id != pair.source_topic_id
        kind = FindingKind.SOURCE_RECREATED if new_source else FindingKind.TARGET_RECREATED
        gone = position.seen_end - offset if new_source else 0
        return log_start, 0, Finding(kind, pair, offset, log_start, rules.on_recreated, gone)
    if end < offset:
        return offset, 0, Finding(FindingKind.SOURCE_TRUNCATED, pair, end, offset, Decision.STOP)
    target_end = partitions.target_ends[row]
    if target_end < position.target_end:
        kind = FindingKind.TARGET_TRUNCATED
        return offset, 0, Finding(kind, pair, target_end, position.target_end, Decision.STOP)
    if log_start > offset:
        came_back = offsets_among(partitions.returned[row], offset, log_start)
        finding = Finding(FindingKind.EXPIRED, pair, offset, log_start, rules.on_expired, returned=came_back)
        return log_start, log_start - offset, finding if came_back < log_start - offset else None
    return offset, 0, None


def _returned(spans: Sequence[Span], start: int, end: int) -> tuple[Span, ...]:
    """Those of the spans that reach into `[start, end)`."""
    first = bisect_right(spans, start, key=lambda span: span.end)
    after = bisect_right(spans, end, key=lambda span: span.start)
    return tuple(spans[first:after])


def _skipped(partitions: Partitions, row: int, start: int, rules: Rules) -> int:
    """How many offsets lie before `start` that copying was asked to leave out."""
    asked = partitions.positions[row] is None and partitions.pairs[row].source in rules.begin_at
    return start - partitions.log_starts[row] if asked else 0


def _added(partitions: Partitions) -> dict[UUID, int]:
    """Of each target topic that is mirrored already, the number from which on its partitions are later ones.

    Partitions are added at the end, so before the first of them every one has a position.
    """
    highest: dict[UUID, int] = {}
    without: dict[UUID, int] = {}
    for pair, position in zip(partitions.pairs, partitions.positions, strict=True):
        topic = pair.target_topic_id
        if position is None:
            without[topic] = min(without.get(topic, pair.partition), pair.partition)
        else:
            highest[topic] = max(highest.get(topic, -1), pair.partition)
    return {topic: number + 1 for topic, number in highest.items() if number < without.get(topic, number + 1)}


def _has_position(position: Position | None, pair: PartitionPair) -> bool:
    """Whether there is a position, and it belongs to the topics as they are now."""
    return position is not None and (position.source_topic_id, position.target_topic_id) == (
        pair.source_topic_id,
        pair.target_topic_id,
    )


def _spread(ranges: Sequence[PlannedRange], tasks: int) -> tuple[Task, ...]:
    by_lane: dict[int, list[PlannedRange]] = {}
    for planned in ranges:
        by_lane.setdefault(planned.lane, []).append(planned)
    weights = {lane: sum(planned.bytes for planned in members) for lane, members in by_lane.items()}
    lanes_of_task: list[list[int]] = [[] for _ in range(min(max(tasks, 1), len(by_lane)))]
    heap = [(0, 0, number) for number in range(len(lanes_of_task))]
    # Heaviest first, to the task that has least; among equals, to the one with fewest lanes, so that none
    # is idle.
    for lane in sorted(by_lane, key=lambda lane: (-weights[lane], lane)):
        weight, count, number = heapq.heappop(heap)
        lanes_of_task[number].append(lane)
        heapq.heappush(heap, (weight + weights[lane], count + 1, number))
    return tuple(
        Task(
            tuple(sorted(lanes)),
            tuple(planned for lane in sorted(lanes) for planned in by_lane[lane]),
            sum(weights[lane] for lane in lanes),
        )
        for lanes in lanes_of_task
    )
