"""Consumer groups go back: their positions on the target, translated by the way home and committed on the source.

The target has led, so its positions hold, also over newer ones that a group has from before on the source. Nothing is
committed for a group with members on the source: it goes on there by itself. One that still has members on the target
is moved as it stands and named, since it will read again what it reads there from now on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.group_offsets import commit_offsets, fetch_offsets
from twinlog.cluster.groups import list_groups
from twinlog.intake.extensions import naming_of, topics_of
from twinlog.ledger.store import Ledger
from twinlog.model.checkpoints import Commit, Reason
from twinlog.model.offsets import TopicPartition
from twinlog.model.selection import TopicSelection
from twinlog.model.topology import Topology
from twinlog.model.way_home import WayHome
from twinlog.operations.group_translation import group_translation
from twinlog.operations.source_groups import listed, read_source_groups
from twinlog.operations.standings import Standing, read_target_groups, standings

_STAYS = frozenset({Reason.NOT_TAKEN, Reason.CAME_FROM_TARGET, Reason.NO_TWIN})
"""Of topics that do not go home."""


@dataclass(frozen=True)
class GroupsHome:
    """What became of the groups."""

    moved: tuple[dict[str, Any], ...] = ()
    """A row a group and partition: where it goes on, on the source."""
    left_out: tuple[dict[str, Any], ...] = ()
    read_again: int = 0
    """Records that groups will read twice, since the two logs interleave differently."""
    warnings: tuple[str, ...] = ()

    @property
    def groups(self) -> int:
        return len({row["group"] for row in self.moved})


def move_groups_home(
    topology: Topology, home: WayHome, here: ClusterAccess, there: ClusterAccess, ledger: Ledger
) -> GroupsHome:
    """`here` is where the groups have been, the way home's source, and `there` where they go on."""
    named = {flow.name: naming_of(flow) for flow in topology.flows.values() if flow.naming_policy}
    selection = TopicSelection(topology, home, named, topics_of(home))
    with there.raw() as target, here.raw(beside=target) as source:
        groups = target.run(read_source_groups(source, home))
        translation = group_translation(topology, home, here, there, ledger)
        known = target.run(read_target_groups(target, groups, {}))
        found = standings(selection, groups, translation, known)
        rows = [_led(row, known.active) for row in found.rows if row.source is not None and row.reason not in _STAYS]
        commits: dict[str, dict[TopicPartition, Commit]] = {}
        for row in rows:
            if row.reason is None and row.target is not None and row.checkpoint is not None:
                commit = Commit(row.checkpoint.downstream, metadata=row.checkpoint.metadata)
                commits.setdefault(row.group, {})[row.target] = commit
        outcomes = target.run(commit_offsets([target], commits)) if commits else {}
        back = target.run(fetch_offsets(target, sorted(commits))).groups if commits else {}
        rows = [_with_outcome(row, outcomes, back) for row in rows]
        busy = sorted(
            name for name, group in target.run(list_groups(source)).items() if group.active and name in commits
        )
    warnings = (
        f"{listed(busy)} still active on {home.source}: stop them, or they read again on {home.target} what they read "
        f"there from now on"
    )
    return GroupsHome(
        tuple(_row(row) for row in rows if row.reason is None),
        tuple({**_row(row), "reason": str(row.reason)} for row in rows if row.reason is not None),
        sum(row.read_again for row in rows if row.reason is None),
        (*found.notes, *([warnings] if busy else [])),
    )


def _led(row: Standing, active: frozenset[str]) -> Standing:
    """The row as it is where the way home's source leads: only members there speak against it."""
    if row.checkpoint is None:
        return row
    reason = Reason.ACTIVE if row.group in active else None
    keeps = row.reason in (Reason.NOT_AUTHORIZED, Reason.REFUSED, Reason.LONG_METADATA)
    return replace(row, offset=row.checkpoint.downstream, reason=row.reason if keeps else reason)


def _with_outcome(row: Standing, outcomes: Any, back: Any) -> Standing:
    """The row with what its coordinator said, and whether the offset is there when it is read back."""
    if row.reason is not None or row.target is None or row.checkpoint is None:
        return row
    outcome = outcomes[row.group]
    if outcome.active:
        return replace(row, reason=Reason.ACTIVE)
    if row.target in outcome.refused:
        return replace(row, reason=Reason.REFUSED)
    kept = back.get(row.group, {}).get(row.target)
    return row if kept is not None and kept.offset == row.checkpoint.downstream else replace(row, reason=Reason.MOVED)


def _row(row: Standing) -> dict[str, Any]:
    return {
        "group": row.group,
        "topic": None if row.target is None else row.target.topic,
        "partition": None if row.target is None else row.target.partition,
        "offset": row.offset,
        "how": row.how,
        "read_again": row.read_again,
        "from_topic": None if row.source is None else row.source.topic,
        "from_offset": None if row.committed is None else row.committed.offset,
    }


def by_group(rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    """How many partitions of each group."""
    found: dict[str, int] = {}
    for row in rows:
        found[row["group"]] = found.get(row["group"], 0) + 1
    return found
