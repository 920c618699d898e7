"""What the groups had read when the source was last seen: by the checkpoints on the target and by the readiness table
beside the ledger, whichever is newer of each group and partition.

Nothing is asked of the source, and nothing that is known of a group is dropped: what can't be moved comes with its
reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twinlog.cluster.checkpoint_store import GroupPartition
from twinlog.intake.extensions import naming_of
from twinlog.model.checkpoints import Commit, Reason, Written
from twinlog.model.offsets import TopicPartition
from twinlog.model.topology import Flow
from twinlog.operations.readiness import Readiness
from twinlog.operations.source_groups import SourceGroups
from twinlog.operations.standings import Standing

_NOT_OFFSETS = frozenset({Reason.RECREATED})
"""Reasons for which the offset that was seen does not belong to what was mirrored."""
_COLUMNS = ("group", "topic", "partition", "source_offset", "reason", "source_end")


@dataclass(frozen=True)
class LastSeen:
    """The groups as they were last seen, and the source's ends."""

    groups: SourceGroups
    left_out: tuple[Standing, ...] = ()
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where logs of the source ended, of those that were known not to be copied to their ends."""
    at_ms: int | None = None
    """When; None where there is no readiness table."""


def last_seen(flow: Flow, written: Mapping[GroupPartition, Written], table: Readiness | None) -> LastSeen:
    """`written` are the checkpoints on the target, `table` the last readiness table."""
    policy = naming_of(flow)
    commits: dict[str, dict[TopicPartition, Commit]] = {}
    written_ms: dict[tuple[str, TopicPartition], int] = {}
    for (group, target), found in written.items():
        topic = policy.source_name(target.topic)
        if topic is not None:
            partition = TopicPartition(topic, target.partition)
            commits.setdefault(group, {})[partition] = Commit(found.last.upstream, metadata=found.last.metadata)
            written_ms[group, partition] = found.written_ms
    if table is None:
        return LastSeen(SourceGroups(commits))
    without: dict[str, Reason] = {}
    left_out: list[Standing] = []
    ends: dict[TopicPartition, int] = {}
    columns = [table.table.column(name).to_pylist() for name in _COLUMNS]
    for group, topic, number, offset, reason, end in zip(*columns, strict=True):
        if topic is None:
            without[group] = Reason(reason)
            continue
        partition = TopicPartition(topic, number)
        if end is not None:
            ends[partition] = max(end, ends.get(partition, 0))
        if reason in _NOT_OFFSETS:
            commits.get(group, {}).pop(partition, None)
            left_out.append(Standing(group, partition, reason=Reason(reason)))
        elif offset is not None and written_ms.get((group, partition), -1) <= table.at_ms:
            known = commits.setdefault(group, {})
            before = known.get(partition)
            if before is None or before.offset != offset:
                known[partition] = Commit(offset, metadata="" if before is None else before.metadata)
    moved = {group: positions for group, positions in commits.items() if positions}
    named = {group: reason for group, reason in without.items() if group not in moved}
    return LastSeen(SourceGroups(moved, named), tuple(left_out), ends, table.at_ms)
