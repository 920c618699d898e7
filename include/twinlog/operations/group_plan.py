"""Where one group goes on, on the target: the answer that a failover needs, also when the source is gone.

With the source there, the group's commits are asked of it. Without, they are taken from the checkpoints on the target,
and what could not be translated at the last pass from the readiness table beside the ledger. By time, the target
alone is asked, and a group that has never committed gets every twin of the flow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
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
from twinlog.operations.lag import PartitionLag, measure_partitions
from twinlog.operations.readiness import ReadinessTables, unread_of
from twinlog.operations.source_groups import SourceGroups, groups_of_checkpoints, read_source_groups
from twinlog.operations.standings import Standing, read_target_groups, standings

CONNECT_TIMEOUT_S = 10.0
"""For the source, which may be gone."""
BY_TIME = "by time"
CHECKPOINT = "checkpoint"
"""Translated when the source was still there; a name that is mirrored both ways can't be translated without it."""


@dataclass(frozen=True)
class GroupPlan:
    """One group's partitions with the offset it goes on at, and those that are left out, each with its reason."""

    flow: str
    plan: tuple[dict[str, Any], ...]
    left_out: tuple[dict[str, Any], ...]
    lost_records: int | None
    """Offsets of the planned partitions that were never copied; None where the source can't be asked."""
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
        with ExitStack() as stack:
            target = stack.enter_context(self._target.raw())
            written = {
                place: found
                for place, found in target.run(checkpoint_store(self._flow, target).read()).items()
                if place.group == group
            }
            groups, source = SourceGroups({}), None
            notes: tuple[str, ...] = ()
            try:
                source = stack.enter_context(self._source.raw(CONNECT_TIMEOUT_S, beside=target))
                groups = target.run(read_source_groups(source, self._flow, only=group))
            except ClusterUnreachableError as gone:
                notes = (f"{gone}; the checkpoints on {self._flow.target} say what the group had read",)
            if not groups.commits and not groups.without:
                groups = groups_of_checkpoints(written, self._policy)
            access = None if source is None else self._source
            translation = group_translation(self._topology, self._flow, access, self._target, self._ledger)
            there = target.run(read_target_groups(target, groups, written))
            rows = standings(self._selection, groups, translation, there, renew_before_ms=0).rows
            rows = tuple(self._by_checkpoint(row, written) for row in rows)
            if at_ms is not None:
                rows = self._by_time(target, group, rows, at_ms)
            rows = rows or self._last_seen(group)
            partitions = sorted({row.source for row in rows if row.source is not None and row.ready})
            lags = (
                None
                if source is None
                else target.run(measure_partitions(source, target, self._flow, self._policy, partitions))
            )
            return _planned(self._flow, rows, unread_of(rows, translation.onward), lags, notes)

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
            twins = sorted(positions)
        view = target.run(target.metadata({twin.topic for twin in twins}))
        first = target.run(list_offsets(target, view, twins, AtTime(at_ms))).offsets
        ends = target.run(list_offsets(target, view, twins, OffsetAt.LAST_STABLE)).offsets
        found = []
        for twin in twins:
            topic = self._policy.source_name(twin.topic)
            if topic is None or twin not in first or twin not in ends:
                continue
            offset = first[twin] if first[twin] >= 0 else ends[twin]
            source = TopicPartition(topic, twin.partition)
            found.append(Standing(group, source, target=twin, how=BY_TIME, offset=offset))
        return tuple(found)

    def _last_seen(self, group: str) -> tuple[Standing, ...]:
        """What the last pass had to say of a group that has neither commits nor checkpoints now."""
        last = ReadinessTables(self._ledger).last()
        reasons = {row["reason"] for row in (last.table.to_pylist() if last else ()) if row["group"] == group}
        known = sorted(Reason(reason) for reason in reasons if reason is not None)
        return tuple(Standing(group, reason=reason) for reason in known or [Reason.NO_COMMIT])


def _planned(
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
    seconds = [lag.seconds for lag in lags.values() if lag.seconds is not None]
    lost = sum(lag.records for lag in lags.values())
    return GroupPlan(flow.name, plan, left_out, lost, round(max(seconds, default=0.0), 3), notes)
