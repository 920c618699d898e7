"""What the groups of a flow have read: from the source while it answers, from the checkpoints where it is gone.

Every group that the flow's filter takes is in the answer, with its commits or with the reason why it has none; those
that the filter does not take are counted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from twinlog.cluster.checkpoint_store import GroupPartition
from twinlog.cluster.group_offsets import GroupCommits, fetch_offsets
from twinlog.cluster.groups import GroupKind, list_groups, sees_all_groups
from twinlog.cluster.raw import RawClient
from twinlog.intake.extensions import groups_of
from twinlog.model.checkpoints import Commit, Reason, Written, is_position_group
from twinlog.model.naming import NamingPolicy
from twinlog.model.offsets import TopicPartition
from twinlog.model.topology import Flow


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


async def read_source_groups(
    source: RawClient, flow: Flow, known: Collection[str] = (), only: str | None = None
) -> SourceGroups:
    """Ask the source for the flow's groups, or for the `only` one that is wanted, whatever the filter says of it.

    `known` are those that have checkpoints already: `refresh.groups.enabled: false` keeps to them.
    """
    accepts = groups_of(flow).accepts if only is None else only.__eq__
    listed = await list_groups(source)
    taken = {name: group for name, group in listed.items() if not is_position_group(name) and accepts(name)}
    if not flow.refresh_groups_enabled and known:
        taken = {name: group for name, group in taken.items() if name in known}
    shared = {name for name, group in taken.items() if group.kind == GroupKind.SHARE}
    offsets = await fetch_offsets(source, sorted(taken.keys() - shared))
    commits = {name: found for name, found in offsets.groups.items() if found}
    without = dict.fromkeys(shared, Reason.SHARE_GROUP)
    without |= {name: Reason.NO_COMMIT for name, found in offsets.groups.items() if not found}
    without |= {
        name: Reason.NOT_AUTHORIZED if why.not_allowed else Reason.UNREADABLE for name, why in offsets.refused.items()
    }
    return SourceGroups(commits, without, len(listed) - len(taken), await _notes(source))


def groups_of_checkpoints(written: Mapping[GroupPartition, Written], policy: NamingPolicy) -> SourceGroups:
    """What these groups had read when they were last checkpointed; nothing is asked of the source."""
    commits: dict[str, dict[TopicPartition, Commit]] = {}
    for (group, target), found in written.items():
        topic = policy.source_name(target.topic)
        if topic is not None:
            commit = Commit(found.last.upstream, metadata=found.last.metadata)
            commits.setdefault(group, {})[TopicPartition(topic, target.partition)] = commit
    return SourceGroups(commits)


async def _notes(source: RawClient) -> tuple[str, ...]:
    if await sees_all_groups(source):
        return ()
    return (
        f"cluster {source.alias}: we may not describe the cluster, so only the groups that we may describe are looked "
        "at, and there may be others; grant Describe on the cluster to see all",
    )
