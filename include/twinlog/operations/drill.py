"""Drill: a failover rehearsed without touching production.

    plan      as a failover would make it, without asking the source for anything
    move      shadow groups, `billing.drill` for `billing`, get the offsets that the groups would get, and are read back
    resume    real consumers of the shadow groups join, find those offsets, and read what is there, read_committed
    check     every record that they read is held against the ledger, and against the source where it can be reached
    forget    the shadow groups are deleted; how it went is kept in the series beside the ledger

What always holds: nothing is asked of the source but, at the end, the records that are compared, and nothing is written
to it; no group of production is written to on the target, only those whose names end in `.drill`; the flow goes on
meanwhile. A shadow group that somebody uses is left alone, and one that an earlier drill left behind is made anew.

The recovery time is that from the trigger until the consumers of every group have read their first record, or have
found that nothing is left to read. The recovery point is that of the plan.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.group_offsets import commit_offsets, fetch_offsets
from twinlog.cluster.groups import list_groups
from twinlog.cluster.raw import RawClient
from twinlog.cluster.resuming import Resumed, resume
from twinlog.cluster.shadow_groups import delete_groups
from twinlog.errors import DrillError
from twinlog.ledger.store import Ledger
from twinlog.model.checkpoints import DRILL, Commit
from twinlog.model.objectives import Objective, Objectives
from twinlog.model.offsets import TopicPartition
from twinlog.model.takeover import GroupStart, Request, TakeoverPlan
from twinlog.model.topology import Flow, Topology
from twinlog.operations.drill_check import Fault, check
from twinlog.operations.flow_gate import SOURCE_LEADS, record_of
from twinlog.operations.recovery_series import Event, Recovery, RecoverySeries
from twinlog.operations.takeover_plan import TakeoverPlanning

GROUPS_AT_MOST = 20
RECORDS_A_PARTITION = 100
WITHIN_S = 120.0
LISTED_AT_MOST = 100
_OURS = "twinlog drill"
"""Beside every offset of a shadow group."""


@dataclass(frozen=True, slots=True)
class DrillLimits:
    """How much of production is rehearsed."""

    groups: str | None = None
    """A pattern of their names; None for all that the flow takes."""
    groups_at_most: int = GROUPS_AT_MOST
    records: int = RECORDS_A_PARTITION
    """Read and compared of each partition of each group."""
    within_s: float = WITHIN_S


@dataclass(frozen=True)
class DrillResult:
    """How it went."""

    flow: str
    at_ms: int
    groups: tuple[dict[str, Any], ...] = ()
    """A row a group: partitions, records, seconds until its first record, faults."""
    faults: tuple[Fault, ...] = ()
    left_out: tuple[dict[str, Any], ...] = ()
    recovery_time_s: float | None = None
    recovery_point_s: float | None = None
    lost_records: int | None = None
    records: int = 0
    """Read and held against the ledger."""
    compared: int = 0
    """Of them, those that were held against the source too."""
    objectives: Objectives = field(default_factory=Objectives)
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def missed(self) -> list[str]:
        return list(self.objectives.missed(self.flow))

    @property
    def exit_code(self) -> int:
        nobody = not self.groups and not self.left_out
        return 1 if self.faults or self.missed or (self.recovery_time_s is None and not nobody) else 0

    def to_json(self) -> dict[str, Any]:
        return {
            "flow": self.flow,
            "at_ms": self.at_ms,
            "groups": list(self.groups),
            "faults": [fault.to_json() for fault in self.faults[:LISTED_AT_MOST]],
            "fault_count": len(self.faults),
            "left_out": list(self.left_out),
            "recovery_time_s": None if self.recovery_time_s is None else round(self.recovery_time_s, 3),
            "recovery_point_s": self.recovery_point_s,
            "lost_records": self.lost_records,
            "records": self.records,
            "compared": self.compared,
            "objectives": self.objectives.to_json(),
            "notes": list(self.notes),
            "seconds": round(self.seconds, 3),
        }


class Drill:
    """A flow and everything that a drill needs."""

    def __init__(
        self, topology: Topology, flow: Flow, source: ClusterAccess, target: ClusterAccess, ledger: Ledger
    ) -> None:
        self._topology = topology
        self._flow = flow
        self._source = source
        self._target = target
        self._ledger = ledger

    def run(self, limits: DrillLimits = DrillLimits()) -> DrillResult:
        """Rehearse once."""
        triggered, at_ms = time.monotonic(), int(time.time() * 1000)
        with self._target.raw() as target:
            state = target.run(record_of(self._flow, target)).state
        if state not in SOURCE_LEADS:
            note = f"{self._flow.name} is {state}: while {self._flow.source} does not lead there is nothing to rehearse"
            return DrillResult(self._flow.name, at_ms, notes=(note,))
        planning = TakeoverPlanning(self._topology, self._flow, self._source, self._target, self._ledger)
        plan = planning.plan_alone(Request(groups=limits.groups))
        chosen, notes = _chosen(plan, limits)
        self._move(chosen)
        try:
            resumed = resume(self._target, _starts(chosen), limits.records, limits.within_s)
        finally:
            self._forget([name + DRILL for name in chosen])
        checked = check(self._topology, self._flow, self._source, self._target, self._ledger, resumed, limits.records)
        ready = [one.first_s for one in resumed]
        took = None
        if ready and all(seconds is not None for seconds in ready):
            took = max(seconds for seconds in ready if seconds is not None) - triggered
        result = DrillResult(
            self._flow.name,
            at_ms,
            tuple(_row(one, triggered, checked.faults) for one in resumed),
            checked.faults,
            tuple(row._asdict() for row in plan.left_out),
            took,
            plan.lost_seconds,
            plan.lost_records,
            checked.records,
            checked.compared,
            notes=(*notes, *plan.notes, *checked.notes),
            seconds=time.monotonic() - triggered,
        )
        self._keep(result)
        return replace(result, objectives=self._objectives(result))

    def _move(self, chosen: Mapping[str, Sequence[GroupStart]]) -> None:
        commits = {
            name + DRILL: {TopicPartition(row.topic, row.partition): Commit(row.offset, metadata=_OURS) for row in rows}
            for name, rows in chosen.items()
        }
        if not commits:
            return
        with self._target.raw() as target:
            known = target.run(list_groups(target))
            used = sorted(name for name in commits if name in known and known[name].active)
            if used:
                raise DrillError(
                    f"{self._flow.name}: {', '.join(used[:5])} have members on {self._flow.target}: another drill is "
                    "under way, or somebody uses these names; nothing was rehearsed"
                )
            self._delete_ours(target, [name for name in commits if name in known])
            outcomes = target.run(commit_offsets([target], commits))
            back = target.run(fetch_offsets(target, sorted(commits))).groups
        refused = sorted(name for name, outcome in outcomes.items() if outcome.active or outcome.refused)
        lost = {name for name, wanted in commits.items() if not _same(wanted, back.get(name))}
        refused += sorted(lost.difference(refused))
        if refused:
            self._forget(sorted(commits))
            raise DrillError(
                f"{self._flow.name}: the offsets of {', '.join(refused[:5])} could not be committed on "
                f"{self._flow.target}; is READ on these groups and their topics granted?"
            )

    def _delete_ours(self, target: RawClient, names: Sequence[str]) -> None:
        """Those that an earlier drill left behind; a group that only happens to have such a name is somebody's."""
        there = target.run(fetch_offsets(target, names)).groups if names else {}
        others = sorted(
            name for name in names if any(commit.metadata != _OURS for commit in there.get(name, {}).values())
        )
        if others:
            raise DrillError(
                f"{self._flow.name}: {', '.join(others[:5])} have offsets on {self._flow.target} that no drill has "
                "committed: somebody uses these names, so nothing was rehearsed. Rehearse other groups, with --groups"
            )
        delete_groups(target, names)

    def _forget(self, names: Sequence[str]) -> None:
        if names:
            with self._target.raw() as target:
                delete_groups(target, names)

    def _keep(self, result: DrillResult) -> None:
        RecoverySeries(self._ledger).add(
            Recovery(
                self._flow.name,
                result.at_ms,
                Event.DRILL,
                result.recovery_time_s,
                result.recovery_point_s,
                result.lost_records,
                len(result.groups),
                sum(1 for row in result.groups if row["ready_s"] is not None and not row["faults"]),
                result.records,
                len(result.faults),
            )
        )

    def _objectives(self, result: DrillResult) -> Objectives:
        flow = self._flow
        return Objectives(
            Objective(flow.recovery_point_seconds, result.recovery_point_s, Event.DRILL, result.at_ms),
            Objective(flow.recovery_time_seconds, result.recovery_time_s, Event.DRILL, result.at_ms),
        )


def _chosen(plan: TakeoverPlan, limits: DrillLimits) -> tuple[dict[str, list[GroupStart]], list[str]]:
    """The rows of the groups that are rehearsed, and what is to be said of the others."""
    by_group: dict[str, list[GroupStart]] = {}
    for row in plan.rows:
        by_group.setdefault(row.group, []).append(row)
    names = sorted(by_group)
    if not names:
        return {}, ["no group that the flow takes has anything to go on with, so nobody's return was rehearsed"]
    if len(names) <= limits.groups_at_most:
        return by_group, []
    # Other groups every week: who is rehearsed turns with the days.
    first = int(plan.made_at_ms // 86_400_000) % len(names)
    turned = [*names[first:], *names[:first]][: limits.groups_at_most]
    note = f"{len(turned):,} of {len(names):,} groups were rehearsed, other ones every day"
    return {name: by_group[name] for name in sorted(turned)}, [note]


def _starts(chosen: Mapping[str, Sequence[GroupStart]]) -> dict[str, dict[TopicPartition, int]]:
    return {
        name + DRILL: {TopicPartition(row.topic, row.partition): row.offset for row in rows}
        for name, rows in chosen.items()
    }


def _same(wanted: Mapping[TopicPartition, Commit], found: Mapping[TopicPartition, Commit] | None) -> bool:
    return found is not None and all(
        place in found and found[place].offset == commit.offset for place, commit in wanted.items()
    )


def _row(one: Resumed, triggered: float, faults: Sequence[Fault]) -> dict[str, Any]:
    return {
        "group": one.group.removesuffix(DRILL),
        "partitions": len(one.starts),
        "records": len(one.records),
        "ready_s": None if one.first_s is None else round(one.first_s - triggered, 3),
        "faults": sum(1 for fault in faults if fault.group == one.group.removesuffix(DRILL)),
    }
