"""From where every group stands to where it goes on, by the strategy that was asked for.

standings  --translated-->  as they stand: an offset that means the same, or the end of the copy
           --by time, earliest, latest-->  an offset of the target's own log
                                              --held against what the group has on the target-->  rows, left out
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from twinlog.cluster.log_offsets import AtTime, OffsetAt, list_offsets
from twinlog.cluster.raw import RawClient
from twinlog.model.checkpoints import IN_USE, Checkpoint, Decision, Reason, decide
from twinlog.model.offsets import TopicPartition
from twinlog.model.takeover import GroupLeftOut, GroupStart, How, Request, Strategy
from twinlog.operations.standings import Standing, TargetGroups

_UNTOUCHABLE = frozenset({Reason.NOT_AUTHORIZED, Reason.REFUSED, Reason.LONG_METADATA})
"""Whatever the strategy, nothing can be committed for these."""


@dataclass(frozen=True)
class Starts:
    """Where groups go on, as standings, with the words of how each offset was found."""

    rows: tuple[Standing, ...]

    def left_out(self) -> Iterator[GroupLeftOut]:
        for row in self.rows:
            if not row.ready:
                topic = None if row.source is None else row.source.topic
                number = None if row.source is None else row.source.partition
                yield GroupLeftOut(row.group, str(row.reason), topic, number, row.behind)

    def planned(self, unread: Sequence[int | None]) -> Iterator[GroupStart]:
        """`unread` is of every row."""
        for row, count in zip(self.rows, unread, strict=True):
            if not row.ready or row.target is None or row.offset is None:
                continue
            in_use = row.reason is not None
            commit = row.decision.commit and not in_use
            yield GroupStart(
                row.group,
                row.target.topic,
                row.target.partition,
                row.offset,
                str(row.reason) if in_use else str(row.how),
                count,
                row.read_again,
                commit,
                row.there.offset if commit and row.there is not None else None,
                row.checkpoint.metadata if commit and row.checkpoint is not None else "",
            )


class Starting:
    """One takeover's way from standings to starts."""

    def __init__(self, request: Request, there: TargetGroups) -> None:
        self._request = request
        self._there = there

    def starts(self, target: RawClient, rows: Iterable[Standing]) -> Starts:
        by_strategy: dict[Strategy, list[Standing]] = {strategy: [] for strategy in Strategy}
        strategies: dict[str, Strategy] = {}
        for row in rows:
            strategy = strategies.get(row.group)
            if strategy is None:
                strategy = strategies[row.group] = self._request.strategy_of(row.group)
            by_strategy[strategy].append(row)
        found = chain(
            self._over_own(by_strategy[Strategy.TRANSLATED]),
            self._over_own(self._by_the_log(target, by_strategy)),
        )
        return Starts(tuple(sorted(found, key=lambda row: (row.group, row.target or row.source or _NOWHERE))))

    def _by_the_log(self, target: RawClient, by_strategy: Mapping[Strategy, Sequence[Standing]]) -> Iterator[Standing]:
        for strategy, how, at in (
            (Strategy.EARLIEST, How.EARLIEST, OffsetAt.LOG_START),
            (Strategy.LATEST, How.LATEST, OffsetAt.LAST_STABLE),
            (Strategy.TIMESTAMP, How.BY_TIME, AtTime(self._request.from_ms or 0)),
        ):
            rows = by_strategy[strategy]
            twins = {row.target for row in rows if row.target is not None}
            view = target.run(target.metadata({twin.topic for twin in twins}))
            offsets = target.run(list_offsets(target, view, twins, at)).offsets
            if strategy is Strategy.TIMESTAMP:
                ends = target.run(list_offsets(target, view, twins, OffsetAt.LAST_STABLE)).offsets
                # Negative where no record is of that time or later: then the next one to come is.
                offsets = {
                    twin: at if at >= 0 else ends[twin] for twin, at in offsets.items() if at >= 0 or twin in ends
                }
            yield from (self._at(row, offsets, how) for row in rows)

    def _at(self, row: Standing, offsets: Mapping[TopicPartition, int], how: How) -> Standing:
        if row.target is None or row.reason in _UNTOUCHABLE:
            return row
        offset = offsets.get(row.target)
        if offset is None:
            return replace(row, offset=None, reason=Reason.UNREADABLE)
        return self._decided(replace(row, read_again=0), offset, how)

    def _decided(self, row: Standing, offset: int, how: How) -> Standing:
        """The row as it is where the group is to go on at `offset`."""
        if row.target is None or row.place is None:
            return row
        there = self._there.offsets.groups.get(row.group, {}).get(row.target)
        upstream = 0 if row.committed is None else row.committed.offset
        wanted = Checkpoint(upstream, offset)
        active = row.group in self._there.active
        decision = decide(wanted, self._there.written.get(row.place), there, active=active, renew_before_ms=0)
        return replace(
            row,
            how=str(how),
            checkpoint=wanted,
            offset=decision.offset,
            reason=decision.reason,
            there=there,
            decision=decision,
        )

    def _over_own(self, rows: Iterable[Standing]) -> Iterator[Standing]:
        """Own positions stay, unless somebody has said that they are to be written over."""
        for row in rows:
            if not self._request.over_own_positions or row.reason is not Reason.OWN_POSITION or row.checkpoint is None:
                yield row
            else:
                over = Decision(record=False, commit=True, offset=row.checkpoint.downstream)
                yield replace(row, offset=over.offset, reason=None, decision=over)


def still_reading(rows: Iterable[GroupStart]) -> list[str]:
    """The groups that are on the target already."""
    return sorted({row.group for row in rows if row.how in IN_USE})


_NOWHERE = TopicPartition("", -1)
