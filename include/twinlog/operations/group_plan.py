"""Where one group goes on, on the target: the answer that a failover needs, also when the source is gone.

With the source there, the group's commits are asked of it. Without, or where it stops answering on the way, they are
taken from the checkpoints on the target and the last readiness table beside the ledger, whichever is newer. By
time, the target alone is asked, and a group that has never committed gets every twin of the flow. No partition that is
known of the group is dropped: it is in the plan, or left out with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.checkpoint_store import GroupPartition
from twinlog.cluster.committed import fetch_positions
from twinlog.cluster.log_offsets import AtTime, OffsetAt, list_offsets
from twinlog.cluster.raw import RawClient
from twinlog.errors import ClusterUnreachableError
from twinlog.intake.extensions import naming_of, topics_of
from twinlog.ledger.store import Ledger
from twinlog.model.checkpoints import Reason, Written
from twinlog.model.lanes import position_group
from twinlog.model.offsets import TopicPartition
from twinlog.model.selection import TopicSelection
from twinlog.model.topology import Flow, Topology
from twinlog.operations.checkpoint import checkpoint_store
from twinlog.operations.group_translation import group_translation
from twinlog.operations.lag import PartitionLag, max_known, measure_partitions, sum_known
from twinlog.operations.last_seen import last_seen
from twinlog.operations.readiness import ReadinessTables, unread_of
from twinlog.operations.source_groups import SourceGroups, no_longer_there, read_source_groups
from twinlog.operations.standings import Standing, read_target_groups, standings

CONNECT_TIMEOUT_S = 10.0
"""For the source, which may be gone."""
BY_TIME = "by time"
LAST_SEEN = "as the last pass left it"
CHECKPOINT = "checkpoint"
"""Translated when the source was still there; a name that is mirrored both ways can't be translated without it."""


@dataclass(frozen=True)
class GroupPlan:
    """One group's partitions with the offset it goes on at, and those that are left out, each with its reason."""

    flow: str
    plan: tuple[dict[str, Any], ...]
    left_out: tuple[dict[str, Any], ...]
    lost_records: int | None
    """Offsets of the planned partitions that were never copied; None where the source can't be asked of all."""
    lost_seconds: float | None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "flow": self.flow,
            "plan": list(self.plan),
            "lost_records": self.lost_records,
            "lost_seconds": self.lost_seconds,
            "left_out": list(self.left_out),
            "notes": list(self.notes),
        }


class GroupPlanning:
    """A flow, and how to reach its clusters."""

    def __init__(
        self, topology: Topology, flow: Flow, source: ClusterAccess, target: ClusterAccess, ledger: Ledger
    ) -> None:
        named = {other.name: naming_of(other) for other in topology.flows.values() if other.naming_policy}
        self._topology = topology
        self._flow = flow
        self._source = source
        self._target = target
        self._ledger = ledger
        self._policy = naming_of(flow)
        self._selection = TopicSelection(topology, flow, named, topics_of(flow))

    def plan(self, group: str, at_ms: int | None = None) -> GroupPlan:
        """Where the group goes on; with `at_ms`, at the first record of that time or later."""
        with self._target.raw() as target:
            try:
                with self._source.raw(CONNECT_TIMEOUT_S, beside=target) as source:
                    return self._plan(target, source, group, at_ms)
            except ClusterUnreachableError as gone:
                note = f"{gone}; the checkpoints on {self._flow.target} say what the group had read"
            # Where it was the target that did not answer, this says so.
            alone = self._plan(target, None, group, at_ms)
            return replace(alone, notes=(note, *alone.notes))

    def _plan(self, target: RawClient, source: RawClient | None, group: str, at_ms: int | None) -> GroupPlan:
        strange: list[str] = []
        every = target.run(checkpoint_store(self._flow, target).read(strange))
        written = {place: found for place, found in every.items() if place.group == group}
        groups = SourceGroups({})
        if source is not None:
            groups = target.run(read_source_groups(source, self._flow, {place.group for place in written}, only=group))
        notes = (*groups.notes, *no_longer_there(self._flow.source, groups.gone))
        last = None
        if not groups.commits and not groups.without:
            last = ReadinessTables(self._ledger).last(strange)
            seen = last_seen(self._flow, written, last).groups.commits.get(group)
            groups = SourceGroups({} if seen is None else {group: seen})
        access = None if source is None else self._source
        translation = group_translation(self._topology, self._flow, access, self._target, self._ledger)
        there = target.run(read_target_groups(target, groups, written))
        found = standings(self._selection, groups, translation, there).rows
        rows = tuple(self._by_checkpoint(row, written) for row in found)
        if source is None or not rows:
            rows = with_last_seen(group, rows, [] if last is None else last.table.to_pylist())
        if at_ms is not None:
            rows = self._by_time(target, group, rows, at_ms)
        partitions = sorted({row.source for row in rows if row.source is not None and row.ready})
        lags = (
            None
            if source is None
            else target.run(measure_partitions(source, target, self._flow, self._policy, partitions))
        )
        return planned(self._flow, rows, unread_of(rows, translation.onward), lags, (*notes, *strange))

    def _by_checkpoint(self, row: Standing, written: Mapping[GroupPartition, Written]) -> Standing:
        """The row as it was checkpointed, where it can't be translated without the source."""
        if row.reason is not Reason.BOTH_WAYS or row.source is None:
            return row
        twin = TopicPartition(self._policy.target_name(row.source.topic), row.source.partition)
        known = written.get(GroupPartition(row.group, twin))
        if known is None:
            return row
        return replace(row, target=twin, how=CHECKPOINT, offset=known.last.downstream, reason=None)

    def _by_time(self, target: RawClient, group: str, rows: Sequence[Standing], at_ms: int) -> tuple[Standing, ...]:
        twins = [row.target for row in rows if row.target is not None]
        if not twins:
            positions = target.run(fetch_positions(target, position_group(self._flow.name)))
            # Heartbeats and canaries are the flow's own; nobody waits for their records.
            twins = sorted(twin for twin in positions if not self._selection.is_sign(self._source_of(twin).topic))
        view = target.run(target.metadata({twin.topic for twin in twins}))
        first = target.run(list_offsets(target, view, twins, AtTime(at_ms))).offsets
        ends = target.run(list_offsets(target, view, twins, OffsetAt.LAST_STABLE)).offsets
        # Without a twin there is nothing to look up, and the reason stays; "no commit" is what a time makes up for.
        others = [row for row in rows if row.target is None and row.reason is not Reason.NO_COMMIT]
        return (*(self._at_time(group, twin, first.get(twin), ends.get(twin)) for twin in twins), *others)

    def _at_time(self, group: str, twin: TopicPartition, first: int | None, end: int | None) -> Standing:
        """`first` is negative where no record is of that time or later."""
        source = self._source_of(twin)
        if first is None or end is None:
            return Standing(group, source, target=twin, reason=Reason.UNREADABLE)
        return Standing(group, source, target=twin, how=BY_TIME, offset=first if first >= 0 else end)

    def _source_of(self, twin: TopicPartition) -> TopicPartition:
        return TopicPartition(self._policy.source_name(twin.topic) or twin.topic, twin.partition)


def with_last_seen(group: str, rows: Sequence[Standing], table: Sequence[Mapping[str, Any]]) -> tuple[Standing, ...]:
    """The rows, with what the last pass knew of the group's other partitions; a group of which nobody knows anything
    has no commit."""
    known = {row.source for row in rows}
    seen = [_seen(row) for row in table if row["group"] == group]
    more = [row for row in seen if row.source is not None and row.source not in known]
    whole = [row for row in seen if row.source is None]
    return (*rows, *more) or tuple(whole) or (Standing(group, reason=Reason.NO_COMMIT),)


def _seen(row: Mapping[str, Any]) -> Standing:
    number = row["partition"]
    return Standing(
        row["group"],
        None if row["topic"] is None else TopicPartition(row["topic"], number),
        target=None if row["target_topic"] is None else TopicPartition(row["target_topic"], number),
        how=LAST_SEEN,
        offset=row["target_offset"],
        reason=None if row["reason"] is None else Reason(row["reason"]),
        behind=row["behind"],
        read_again=row["read_again"] or 0,
    )


def planned(
    flow: Flow,
    rows: Sequence[Standing],
    unread: Sequence[int | None],
    lags: Mapping[TopicPartition, PartitionLag] | None,
    notes: tuple[str, ...],
) -> GroupPlan:
    plan = tuple(
        {
            "group": row.group,
            "topic": row.target.topic,
            "partition": row.target.partition,
            "offset": row.offset,
            "how": row.how if row.reason is None else str(row.reason),
            "unread": count,
            "read_again": row.read_again,
            "behind": row.behind,
        }
        for row, count in zip(rows, unread, strict=True)
        if row.ready and row.target is not None
    )
    left_out = tuple(
        {
            "group": row.group,
            "topic": None if row.source is None else row.source.topic,
            "partition": None if row.source is None else row.source.partition,
            "reason": str(row.reason),
            "behind": row.behind,
        }
        for row in rows
        if not row.ready
    )
    if lags is None:
        return GroupPlan(flow.name, plan, left_out, None, None, notes)
    unknown = sorted(str(partition) for partition, lag in lags.items() if lag.records is None)
    if unknown:
        notes = (*notes, f"what was not copied is not known: cluster {flow.source} can't say of {', '.join(unknown)}")
    seconds = max_known(lag.seconds for lag in lags.values())
    return GroupPlan(
        flow.name,
        plan,
        left_out,
        sum_known(lag.records for lag in lags.values()),
        None if seconds is None else round(seconds, 3),
        notes,
    )
