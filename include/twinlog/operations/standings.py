"""Where every group of a flow would go on, on the target, and what is to be written there so that it does.

    commits on the source  --translated all at once-->  checkpoints  --held against the target-->  decisions

A row is one group on one partition. A group of which nothing can be translated has a row too, with the reason: no
group that the flow takes is ever missing.

A group that is ahead of the mirror, as any is that keeps up with a busy topic, has read all that was copied: it goes on
at the end of the copy, and each pass moves it on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa  # noqa: TID253 - no DAG imports an operation at its top

from twinlog.cluster.checkpoint_store import GroupPartition
from twinlog.cluster.group_offsets import Offsets
from twinlog.cluster.group_reading import read_groups
from twinlog.cluster.raw import RawClient
from twinlog.ledger.answers import NoAnswer
from twinlog.model.checkpoints import IN_USE, OF_ANOTHER_FLOW, Checkpoint, Commit, Decision, Reason, Written, decide
from twinlog.model.offsets import TopicPartition
from twinlog.model.selection import LeftOut, TopicSelection
from twinlog.model.takeover import How
from twinlog.operations.group_translation import GroupTranslation
from twinlog.operations.source_groups import SourceGroups, listed
from twinlog.wire.mirror_maker import MOST_TEXT_BYTES

UNDECIDED = Decision(record=False, commit=False, offset=None)
"""Of what can't be translated: nothing is written."""

_ANSWER = ("to_topic", "to_offset", "how", "reason", "behind", "read_again")
_REASONS = {
    NoAnswer.RECREATED: Reason.RECREATED,
    NoAnswer.BEHIND: Reason.AHEAD,
    NoAnswer.NOT_RECORDED: Reason.NOT_RECORDED,
}


@dataclass(frozen=True, slots=True)
class Standing:
    """One group on one partition; a group without commits has one row without a partition."""

    group: str
    source: TopicPartition | None = None
    committed: Commit | None = None
    """On the source."""
    target: TopicPartition | None = None
    how: str | None = None
    """How the position was translated."""
    checkpoint: Checkpoint | None = None
    offset: int | None = None
    """Where the group goes on, on the target."""
    reason: Reason | None = None
    behind: int | None = None
    """How many offsets the mirror, or its ledger, is behind the group, where it is."""
    read_again: int = 0
    """How many records the group reads twice, where one name is mirrored both ways."""
    there: Commit | None = None
    """On the target, when it was looked at."""
    decision: Decision = UNDECIDED

    @property
    def record_due(self) -> bool:
        return self.decision.record

    @property
    def commit_due(self) -> bool:
        return self.decision.commit

    @property
    def ready(self) -> bool:
        """Whether the group could go on, on the target, with nothing skipped."""
        return self.offset is not None and (self.reason is None or self.reason in IN_USE)

    @property
    def remark(self) -> Reason | None:
        """The reason, or that the group is ahead of the mirror."""
        return Reason.AHEAD if self.reason is None and self.behind is not None else self.reason

    @property
    def place(self) -> GroupPartition | None:
        return None if self.target is None else GroupPartition(self.group, self.target)


@dataclass(frozen=True)
class Standings:
    """All groups of a flow."""

    rows: tuple[Standing, ...]
    filtered: int = 0
    notes: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    """Groups that have checkpoints and that the source no longer lists."""

    @cached_property
    def groups(self) -> dict[str, bool]:
        """Every group, and whether it is ready, on all its partitions that are this flow's matter."""
        found: dict[str, bool] = {}
        for row in self.rows:
            if row.reason not in OF_ANOTHER_FLOW:
                found[row.group] = row.ready and found.get(row.group, True)
        return {row.group: found.get(row.group, False) for row in self.rows}

    @property
    def ready(self) -> int:
        return sum(self.groups.values())

    @property
    def left_out(self) -> list[dict[str, object]]:
        """Each group with each reason that it is not written for, or not as it stands, on how many partitions."""
        found: dict[tuple[str, Reason], list[Standing]] = defaultdict(list)
        for row in self.rows:
            if row.remark is not None:
                found[row.group, row.remark].append(row)
        return [
            {
                "group": group,
                "reason": str(reason),
                "partitions": sum(1 for row in rows if row.source is not None),
                "behind": max((row.behind for row in rows if row.behind is not None), default=None),
                "ready": self.groups[group],
            }
            for (group, reason), rows in sorted(found.items())
        ]


@dataclass(frozen=True)
class TargetGroups:
    """What the target knows of the groups: its own commits, who is active, and what we wrote before."""

    written: Mapping[GroupPartition, Written]
    active: frozenset[str] = frozenset()
    offsets: Offsets = field(default_factory=Offsets)


async def read_target_groups(
    target: RawClient, groups: SourceGroups, written: Mapping[GroupPartition, Written]
) -> TargetGroups:
    """Ask the target for the groups that have something to translate."""
    listing, offsets = await read_groups(target, lambda group: group.name in groups.commits)
    active = frozenset(name for name in groups.commits if name in listing.groups and listing.groups[name].active)
    return TargetGroups(written, active, offsets)


def standings(
    selection: TopicSelection,
    groups: SourceGroups,
    translation: GroupTranslation,
    target: TargetGroups,
    *,
    renew_before_ms: int = 0,
    sync: bool = True,
) -> Standings:
    """Every group's rows, decided; what was written before `renew_before_ms` is due again, and `sync` says whether the
    flow commits what is due."""
    found = _translated(selection, groups, translation)
    translated = [_decided(row, target, renew_before_ms, sync=sync) for row in found]
    without = (Standing(name, reason=reason) for name, reason in groups.without.items())
    rows = sorted((*translated, *without), key=lambda row: (row.group, row.source or TopicPartition("", -1)))
    return Standings(tuple(rows), groups.filtered, (*groups.notes, *_starting(translated)), groups.gone)


def _starting(rows: Sequence[Standing]) -> Iterator[str]:
    """Of groups with members that have not committed everywhere yet: nobody but them knows where they are."""
    names = sorted({row.group for row in rows if row.reason is Reason.ACTIVE and row.offset is None})
    if names:
        yield (
            f"{listed(names)} on the target with members and without a commit on some partition, where their own "
            "auto.offset.reset decides what they read; stop them until a pass has committed for them"
        )


def _translated(selection: TopicSelection, groups: SourceGroups, translation: GroupTranslation) -> Iterator[Standing]:
    recreated = _recreated(groups, translation)
    one_way: list[_Asked] = []
    both_ways: list[_Asked] = []
    for group, commits in groups.commits.items():
        for partition, commit in commits.items():
            if partition in recreated:
                yield Standing(group, partition, commit, recreated[partition], reason=Reason.RECREATED)
                continue
            kind = both_ways if translation.comes_back(partition.topic) else one_way
            kind.append(_Asked(group, partition, commit))
    yield from _at_the_end(_answered(selection, one_way, translation, both_ways=False), translation, both_ways=False)
    if both_ways and translation.both is None:
        yield from (Standing(one.group, one.partition, one.commit, reason=Reason.BOTH_WAYS) for one in both_ways)
    elif both_ways:
        found = _answered(selection, both_ways, translation, both_ways=True)
        yield from _at_the_end(found, translation, both_ways=True)


def _recreated(groups: SourceGroups, translation: GroupTranslation) -> dict[TopicPartition, TopicPartition]:
    """The partitions, with their twins, whose topic on the source is no longer the one that was mirrored: what a group
    has committed there by now means other records."""
    return {
        pair.source: pair.target
        for pair in translation.onward.pairs
        if groups.topic_ids.get(pair.source_topic, pair.source_topic_id) != pair.source_topic_id
    }


class _Asked(NamedTuple):
    group: str
    partition: TopicPartition
    commit: Commit


def _table(asked: Sequence[_Asked]) -> pa.Table:
    return pa.table(
        {
            "topic": pa.array([one.partition.topic for one in asked], pa.string()),
            "partition": pa.array([one.partition.partition for one in asked], pa.int32()),
            "offset": pa.array([one.commit.offset for one in asked], pa.int64()),
        }
    )


def _answered(
    selection: TopicSelection, asked: Sequence[_Asked], translation: GroupTranslation, *, both_ways: bool
) -> Iterator[Standing]:
    answers = translation.table(_table(asked), both_ways=both_ways)
    columns = [answers.column(name).to_pylist() for name in _ANSWER]
    for (group, partition, commit), *answer in zip(asked, *columns, strict=True):
        to_topic, to_offset, how, reason, behind, read_again = answer
        twin = None if to_topic is None else TopicPartition(to_topic, partition.partition)
        if to_offset is None:
            why = _REASONS.get(NoAnswer(reason)) or _not_mirrored(selection, partition.topic)
            yield Standing(group, partition, commit, twin, reason=why, behind=behind)
        elif len(commit.metadata.encode()) > MOST_TEXT_BYTES:
            yield Standing(group, partition, commit, twin, how, reason=Reason.LONG_METADATA)
        else:
            found = Checkpoint(commit.offset, to_offset, commit.metadata)
            yield Standing(group, partition, commit, twin, how, found, read_again=read_again)


def _at_the_end(rows: Iterable[Standing], translation: GroupTranslation, *, both_ways: bool) -> Iterator[Standing]:
    """The rows, and where a group is ahead of the mirror, how it stands at the mirror's own position."""
    ahead: list[Standing] = []
    asked: list[_Asked] = []
    for row in rows:
        if row.reason is Reason.AHEAD and row.source and row.committed and row.behind is not None:
            ahead.append(row)
            # Of the commit's words nothing is known but that they belong to its own offset.
            asked.append(_Asked(row.group, row.source, Commit(row.committed.offset - row.behind)))
        else:
            yield row
    if not ahead:
        return
    answers = translation.table(_table(asked), both_ways=both_ways)
    ends, read_again = (answers.column(name).to_pylist() for name in ("to_offset", "read_again"))
    for row, one, end, again in zip(ahead, asked, ends, read_again, strict=True):
        if end is None:
            yield row
            continue
        found = Checkpoint(one.commit.offset, end)
        yield replace(row, how=str(How.END_OF_COPY), checkpoint=found, reason=None, read_again=again)


def _not_mirrored(selection: TopicSelection, topic: str) -> Reason:
    left_out = selection.left_out(topic)
    if left_out is None:
        return Reason.NO_TWIN
    return Reason.CAME_FROM_TARGET if left_out is LeftOut.CAME_FROM_TARGET else Reason.NOT_TAKEN


def _decided(row: Standing, target: TargetGroups, renew_before_ms: int, *, sync: bool) -> Standing:
    if row.checkpoint is None or row.target is None or row.place is None:
        return row
    refused = target.offsets.refused.get(row.group)
    if refused is not None:
        return replace(row, reason=Reason.NOT_AUTHORIZED if refused.not_allowed else Reason.REFUSED)
    there = target.offsets.groups.get(row.group, {}).get(row.target)
    decision = decide(
        row.checkpoint,
        target.written.get(row.place),
        there,
        active=row.group in target.active,
        renew_before_ms=renew_before_ms,
        sync=sync,
    )
    return replace(row, offset=decision.offset, reason=decision.reason, there=there, decision=decision)
