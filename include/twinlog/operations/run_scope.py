"""What one run of a flow is about: how it reaches its clusters, what it was asked to stay within, and its plan."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.log_offsets import AtTime, list_offsets
from twinlog.cluster.metadata import ClusterMetadata, Topic
from twinlog.cluster.raw import RawClient
from twinlog.errors import ClusterUnreachableError, ConfigurationError
from twinlog.intake.extensions import naming_of, topics_of
from twinlog.model.budget import Budget
from twinlog.model.findings import Finding
from twinlog.model.lanes import lane_of
from twinlog.model.offsets import TopicPartition
from twinlog.model.plan import Decision, Partitions, Plan, Rules, StartAt, plan
from twinlog.model.selection import LeftOut, TopicSelection
from twinlog.model.topology import Flow, Topology
from twinlog.model.way_home import WayHome
from twinlog.operations.hidden_topics import hidden_topics, mirrored_before, named_by, not_copied
from twinlog.operations.sync_scope import keeps_to_twins
from twinlog.operations.twin_planning import Sides


@dataclass(frozen=True)
class Ends:
    """How a run reaches its two clusters: to look around and administer, and to copy."""

    source: ClusterAccess
    target: ClusterAccess
    reading: ClusterAccess
    """The source as a consumer's settings have it."""
    writing: ClusterAccess
    """The target as a producer's settings have it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run is asked to stay within, beyond what the flow says; None asks for nothing more."""

    max_bytes: int | None = None
    max_seconds: float | None = None
    topics: frozenset[str] | None = None
    until_ms: int | None = None
    """Copy no further than to the first record that is stamped with this time or a later one."""
    from_ms: int | None = None
    """Begin partitions that have no position at the first record that is stamped with this time or a later one."""
    from_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Begin these partitions of the source, where they have no position, at these offsets."""
    own_budget: bool = False
    """`max_bytes` and `max_seconds` hold in place of the flow's budget, and not within it."""


NO_LIMITS = Limits()


def topics_of_run(topology: Topology, flow: Flow, sides: Sides, limits: Limits) -> list[Topic]:
    """The source's topics that the flow takes, of those that this run is limited to; one that was named and can't be
    taken is an error, since whoever named it waits for its records."""
    source = sides.source_view
    selection = selection_of(topology, flow)
    taken = [topic for topic in source.topics.values() if selection.left_out(topic.name) is None]
    if limits.topics is None and keeps_to_twins(flow, sides.target_view):
        twins, policy = sides.target_view.topics, naming_of(flow)
        return [topic for topic in taken if policy.target_name(topic.name) in twins or selection.is_sign(topic.name)]
    if limits.topics is None:
        return taken
    chosen = [topic for topic in taken if topic.name in limits.topics]
    wrong = sorted(limits.topics - {topic.name for topic in chosen})
    if wrong:
        raise ConfigurationError(
            "; ".join(_not_taken(flow, name, source, selection.left_out(name), taken) for name in wrong)
        )
    return chosen


def selection_of(topology: Topology, flow: Flow) -> TopicSelection:
    """The flow's choice of topics, with the filter and the naming that people wrote in Python."""
    named = {other.name: naming_of(other) for other in topology.flows.values() if other.naming_policy}
    return TopicSelection(topology, flow, named, topics_of(flow))


def not_shown(
    topology: Topology, flow: Flow, sides: Sides, limits: Limits, other_twins: Collection[str]
) -> list[Finding]:
    """What an unlimited run would copy and may not see; `other_twins` are those of topics that it did not find."""
    # Positions of a way home are kept with those of the listed flow, whose topics are not its own.
    if limits.topics is not None or isinstance(flow, WayHome):
        return []
    selection = selection_of(topology, flow)
    names = named_by(flow, selection) | mirrored_before(other_twins, naming_of(flow), selection)
    return not_copied(sides.source, sides.source.run(hidden_topics(sides.source, sides.source_view, names)))


def _not_taken(flow: Flow, name: str, source: ClusterMetadata, reason: LeftOut | None, taken: list[Topic]) -> str:
    if name in source.topics and reason is not None:
        return f'{flow.name} does not mirror the topic "{name}": {reason.value}'
    close = difflib.get_close_matches(name, [topic.name for topic in taken], n=1)
    hint = f'; did you mean "{close[0]}"?' if close else ""
    return f'cluster {flow.source} shows no topic "{name}"{hint}'


def plan_of_run(  # noqa: PLR0917 - all that a plan is made of, each once
    flow: Flow,
    found: Partitions,
    lanes: int,
    tasks: int,
    limits: Limits,
    begin_at: Mapping[TopicPartition, int] | None = None,
) -> Plan:
    """What to copy of what was found, within the flow's limits and the run's; see `begins` for where it begins."""
    wanted = [limits.max_bytes] if limits.own_budget else [flow.budget_bytes, limits.max_bytes]
    return plan(
        found,
        lambda pair: lane_of(pair.target, lanes),
        tasks,
        Budget(
            bytes=min((size for size in wanted if size is not None), default=None),
            records=None if limits.own_budget else flow.budget_records,
            seconds=seconds_of_run(flow, limits),
            bytes_per_second=flow.throttle * 1e6 if flow.throttle else None,
        ),
        Rules(StartAt(flow.topics_from), Decision(flow.on_expired), begin_at=begin_at or {}),
    )


def seconds_of_run(flow: Flow, limits: Limits) -> float:
    asked = limits.max_seconds or float("inf")
    return asked if limits.own_budget else min(flow.budget_seconds, asked)


def begins(source: RawClient, found: Partitions, limits: Limits) -> dict[TopicPartition, int]:
    """Where partitions without a position are to begin, of which the run's limits say so."""
    without = [pair.source for pair, position in zip(found.pairs, found.positions, strict=True) if position is None]
    if not without or (limits.from_ms is None and not limits.from_offsets):
        return {}
    at = {partition: limits.from_offsets[partition] for partition in without if partition in limits.from_offsets}
    if limits.from_ms is None:
        return at
    ends = dict(zip((pair.source for pair in found.pairs), found.last_stable, strict=True))
    first = _first_since(source, [partition for partition in without if partition not in at], limits.from_ms)
    return at | {partition: offset if offset >= 0 else ends[partition] for partition, offset in first.items()}


def up_to_time(source: RawClient, found: Partitions, until_ms: int | None) -> Partitions:
    """`found` with nothing ready beyond the first record of that time; what was copied already stays copied."""
    if until_ms is None or not found.pairs:
        return found
    first_later = _first_since(source, [pair.source for pair in found.pairs], until_ms)
    return replace(found, last_stable=_bounded(found, first_later))


def _first_since(
    source: RawClient, partitions: Sequence[TopicPartition], timestamp_ms: int
) -> Mapping[TopicPartition, int]:
    """Each partition's first record of that time or a later one; -1 where it has none."""
    view = source.run(source.metadata({partition.topic for partition in partitions}))
    listing = source.run(list_offsets(source, view, partitions, AtTime(timestamp_ms)))
    if listing.failed:
        raise ClusterUnreachableError(
            f"cluster {source.alias}: which records are older than the time asked for can't be told: "
            f"{dict(listing.failed)}; try again"
        )
    return listing.offsets


def _bounded(found: Partitions, first_later: Mapping[TopicPartition, int]) -> list[int]:
    ends = []
    for pair, position, start, end in zip(
        found.pairs, found.positions, found.log_starts, found.last_stable, strict=True
    ):
        # An end below the position would say that the source was cut.
        copied = start if position is None else position.offset
        bound = first_later[pair.source]
        ends.append(end if bound < 0 else min(end, max(bound, copied)))
    return ends
