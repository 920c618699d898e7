"""Commits a plan's offsets for its groups on the target, and reads them back.

    some groups: what have they committed by now? -> one request a group, many at once -> read back and compared -> next

What always holds: a group with members is left alone, and so is a position that the group made itself after the plan
was made, unless it is behind the plan's, or the plan says that own positions are written over. So it may be done twice:
what is there already is not written again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.group_offsets import CommitOutcome, Offsets, commit_offsets, fetch_offsets
from twinlog.cluster.groups import list_groups
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import portions
from twinlog.model.checkpoints import Commit, Reason
from twinlog.model.offsets import TopicPartition
from twinlog.model.takeover import GroupLeftOut, GroupStart, TakeoverPlan

CONNECTIONS = 4
GROUPS_AT_ONCE = 250


@dataclass(frozen=True)
class GroupsMoved:
    """What became of a plan's groups."""

    groups: int = 0
    """That are where the plan wants them, on every partition."""
    committed: int = 0
    """Offsets that were committed now; those that were there already are not."""
    left_out: tuple[GroupLeftOut, ...] = ()
    """What could not be committed, by its name on the target."""


class GroupMoving:
    """The groups of one plan on their way."""

    def __init__(self, plan: TakeoverPlan, access: ClusterAccess) -> None:
        self._plan = plan
        self._access = access

    def move(self, target: RawClient) -> GroupsMoved:
        commits = self._plan.commits
        if not commits:
            return GroupsMoved()
        known = target.run(list_groups(target))
        active = {name for name in commits if name in known and known[name].active}
        committed, left_out = 0, list[GroupLeftOut]()
        with ExitStack() as stack:
            more = min(CONNECTIONS, len(commits)) - 1
            clients = [target, *(stack.enter_context(self._access.raw(beside=target)) for _ in range(more))]
            for names in portions(sorted(commits), lambda _: 1, GROUPS_AT_ONCE):
                chosen = {name: commits[name] for name in names}
                there = target.run(fetch_offsets(target, [name for name in names if name in known]))
                count, left = self._move(clients, chosen, active, there)
                committed += count
                left_out += left
        left_behind = {one.group for one in left_out}
        return GroupsMoved(len(commits.keys() - left_behind), committed, tuple(left_out))

    def _move(
        self,
        clients: Sequence[RawClient],
        chosen: Mapping[str, Sequence[GroupStart]],
        active: set[str],
        there: Offsets,
    ) -> tuple[int, list[GroupLeftOut]]:
        due: dict[str, dict[TopicPartition, Commit]] = {}
        left: list[GroupLeftOut] = []
        for name, rows in chosen.items():
            if name in active:
                left += (_left(row, Reason.ACTIVE) for row in rows)
                continue
            found = there.groups.get(name, {})
            for row in rows:
                partition = TopicPartition(row.topic, row.partition)
                now = found.get(partition)
                if now is not None and now.offset == row.offset:
                    continue
                if now is not None and self._is_own(row, now):
                    left.append(_left(row, Reason.OWN_POSITION))
                else:
                    due.setdefault(name, {})[partition] = Commit(row.offset, metadata=row.metadata)
        outcomes = clients[0].run(commit_offsets(clients, due)) if due else {}
        back = clients[0].run(fetch_offsets(clients[0], sorted(due))) if due else Offsets()
        for name, wanted in due.items():
            left += _not_there(name, wanted, outcomes.get(name, CommitOutcome()), back)
        missing = {(one.group, one.topic, one.partition) for one in left}
        committed = sum(
            (name, place.topic, place.partition) not in missing for name, wanted in due.items() for place in wanted
        )
        return committed, left

    def _is_own(self, row: GroupStart, now: Commit) -> bool:
        """Whether the group has gone on by itself since the plan was made, to beyond where the plan wants it."""
        return not self._plan.request.over_own_positions and now.offset != row.seen and now.offset > row.offset


def _not_there(
    name: str, wanted: Mapping[TopicPartition, Commit], outcome: CommitOutcome, back: Offsets
) -> Iterator[GroupLeftOut]:
    """What of a group's offsets is not what was committed, with the reason."""
    found = back.groups.get(name, {})
    for place, commit in wanted.items():
        refused = outcome.refused.get(place)
        reason = Reason.ACTIVE if outcome.active else None
        if reason is None and refused is not None:
            reason = Reason.NOT_AUTHORIZED if refused.not_allowed else Reason.REFUSED
        if reason is None and (place not in found or found[place].offset != commit.offset):
            reason = Reason.MOVED if name in back.groups else Reason.UNREADABLE
        if reason is not None:
            yield GroupLeftOut(name, str(reason), place.topic, place.partition)


def _left(row: GroupStart, reason: Reason) -> GroupLeftOut:
    return GroupLeftOut(row.group, str(reason), row.topic, row.partition)
