"""What the groups of a flow have read, as the source says; where it is gone, `last_seen` says what is known.

Every group that the flow's filter takes is in the answer, with its commits or with the reason why it has none; those
that the filter does not take are counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from twinlog.cluster.group_coordinators import OFFSETS_TOPIC, PROBE
from twinlog.cluster.group_offsets import GroupCommits
from twinlog.cluster.group_reading import read_groups
from twinlog.cluster.groups import Group, GroupKind, GroupList, sees_all_groups
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import DENIED, sentences
from twinlog.intake.extensions import groups_of
from twinlog.model.checkpoints import Reason, is_own_group
from twinlog.model.topology import Flow

NAMED = 5
"""Names in a sentence, before it goes on with dots."""


@dataclass(frozen=True)
class SourceGroups:
    """The groups of one flow, by name."""

    commits: Mapping[str, GroupCommits]
    """Of every group that has committed something."""
    without: Mapping[str, Reason] = field(default_factory=dict)
    """The groups without commits that could be translated."""
    filtered: int = 0
    """Groups that the flow's filter does not take."""
    notes: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    """Groups that have checkpoints and that the source no longer lists."""
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)
    """Of the topics that they have commits on, as they are on the source now; nothing where it was not asked."""


async def read_source_groups(
    source: RawClient, flow: Flow, known: Collection[str] = (), only: str | None = None
) -> SourceGroups:
    """Ask the source for the flow's groups, or for the `only` one that is wanted, whatever the filter says of it.

    `known` are those that have checkpoints already: `refresh.groups.enabled: false` keeps to them.
    """
    accepts = groups_of(flow).accepts if only is None else only.__eq__
    keeps_to = known if not flow.refresh_groups_enabled and known else None

    def takes(group: Group) -> bool:
        if is_own_group(group.name) or not accepts(group.name):
            return False
        return keeps_to is None or group.name in keeps_to

    listing, offsets = await read_groups(source, lambda group: takes(group) and group.kind != GroupKind.SHARE)
    found = listing.groups
    taken = {name: group for name, group in found.items() if takes(group)}
    shared = {name for name, group in taken.items() if group.kind == GroupKind.SHARE}
    commits = {name: positions for name, positions in offsets.groups.items() if positions}
    without = dict.fromkeys(shared, Reason.SHARE_GROUP)
    without |= {name: Reason.NO_COMMIT for name, positions in offsets.groups.items() if not positions}
    without |= {
        name: Reason.NOT_AUTHORIZED if why.not_allowed else Reason.UNREADABLE for name, why in offsets.refused.items()
    }
    gone = tuple(sorted(name for name in set(known) - found.keys() if accepts(name)))
    notes = await _unseen(source, listing)
    ids = await _topic_ids(source, {partition.topic for group in commits.values() for partition in group})
    return SourceGroups(commits, without, len(found) - len(taken), notes, gone, ids)


def listed(names: Sequence[str]) -> str:
    """How many groups, and the first of them by name."""
    first = ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
    return f"1 group ({first}) is" if len(names) == 1 else f"{len(names):,} groups ({first}) are"


async def _topic_ids(source: RawClient, topics: Collection[str]) -> dict[str, UUID]:
    if not topics:
        return {}
    found = (await source.metadata(topics)).topics.values()
    return {topic.name: topic.topic_id for topic in found if topic.error is None and topic.topic_id is not None}


async def _unseen(source: RawClient, listing: GroupList) -> tuple[str, ...]:
    """Why there may be groups that the source does not list."""
    notes = []
    if not await sees_all_groups(source):
        notes.append(
            f"cluster {source.alias}: we may not describe the cluster, so only the groups that we may describe are "
            "looked at, and there may be others; grant Describe on the cluster to see all"
        )
    return (*notes, *may_be_loading(source, listing), *without_leader(source.alias, listing.leaderless))


def may_be_loading(source: RawClient, listing: GroupList) -> Iterator[str]:
    """That a broker which has just come back may have left out groups, where we may not make sure of it."""
    consequence = "groups of a broker that has just come back may be missing from this pass"
    refused = {}
    if listing.hidden is not None:
        refused[f"topic {OFFSETS_TOPIC}"] = listing.hidden
    if listing.denied:
        refused[f"groups {PROBE}*"] = DENIED
    return sentences(source.alias, source.principal, "DESCRIBE", refused, consequence)


def without_leader(alias: str, partitions: Sequence[int]) -> Iterator[str]:
    """What partitions of the offsets topic hide that have no leader."""
    if partitions:
        numbers = ", ".join(map(str, partitions[:NAMED])) + (", ..." if len(partitions) > NAMED else "")
        yield (
            f"cluster {alias}: {OFFSETS_TOPIC} has {len(partitions):,} partitions without a leader ({numbers}): the "
            "groups that they hold are not listed and not checkpointed; bring their brokers back"
        )


def no_longer_there(alias: str, names: Sequence[str]) -> Iterator[str]:
    """Groups that have checkpoints and that the source does not list."""
    if names:
        yield (
            f"cluster {alias}: {listed(names)} no longer listed there and had been checkpointed: what was committed on "
            "the target stays as it is"
        )
