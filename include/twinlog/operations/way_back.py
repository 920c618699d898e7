"""Two-way mirroring: what came from the target is not sent back to it.

The other direction's journal lies on this flow's source and says exactly which offsets there it wrote. They are taken
behind the barrier, and a run copies no further than the barrier proves: whatever becomes visible later is left for the
next run. No header is needed, and no record goes round.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.inventory import topic_settings
from twinlog.cluster.metadata import ClusterMetadata, Topic
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import demand, principal_of, refusal_named
from twinlog.intake.extensions import naming_of, topics_of
from twinlog.ledger.returned import TargetPartition, mirrored_in
from twinlog.ledger.store import Ledger
from twinlog.model.findings import Finding, FindingKind
from twinlog.model.lanes import journal_topic
from twinlog.model.offsets import PartitionPair, Span, TopicPartition
from twinlog.model.plan import Partitions, Plan, PlannedRange
from twinlog.model.topology import Flow, Topology
from twinlog.operations.recording import bring_up_to_date

_NOT_THERE = "UnknownTopicOrPartitionError"


@dataclass(frozen=True)
class WayBack:
    """The spans of each source partition that the other direction wrote, and how far that is proven."""

    spans: dict[TopicPartition, list[Span]]
    proven: dict[TopicPartition, int]

    def bounded(self, found: Partitions) -> Partitions:
        """The survey with no partition looked at beyond what is proven."""
        ends = [
            min(end, self.proven.get(pair.source, end))
            for pair, end in zip(found.pairs, found.last_stable, strict=True)
        ]
        return replace(found, last_stable=ends)

    def applied(self, planned: Plan) -> Plan:
        """The plan with the spans that each of its ranges passes over."""
        tasks = [replace(task, ranges=tuple(map(self._passing_over, task.ranges))) for task in planned.tasks]
        return replace(planned, tasks=tuple(tasks))

    def _passing_over(self, planned: PlannedRange) -> PlannedRange:
        spans = self.spans.get(planned.pair.source, [])
        # From before the planned start on: a lane may begin at a position that lies behind the plan's.
        first = bisect_right(spans, planned.range.start - planned.expired, key=lambda span: span.end)
        after = bisect_right(spans, planned.range.end, key=lambda span: span.start)
        return replace(planned, returned=tuple(spans[first:after]))


def other_direction(topology: Topology, flow: Flow) -> Flow | None:
    """The flow that writes to this one's source from its target, if there is one."""
    return topology.flows.get(f"{flow.target}->{flow.source}")


def comes_back(topology: Topology, flow: Flow) -> Callable[[str], bool]:
    """Tells of a topic of the source whether it is mirrored both ways under one name."""
    other = other_direction(topology, flow)
    if other is None:
        return lambda _: False
    here, there, takes_back = naming_of(flow), naming_of(other), topics_of(other)

    def answered(topic: str) -> bool:
        twin = here.target_name(topic)
        return takes_back.accepts(twin) and there.target_name(twin) == topic

    return answered


def way_back(
    topology: Topology, flow: Flow, access: ClusterAccess, source: RawClient, found: Partitions
) -> WayBack | None:
    """What the other direction wrote to the source; None where there is no other direction, or it has never run."""
    other = other_direction(topology, flow)
    if other is None or not found.pairs:
        return None
    journal = journal_topic(other.source, other.target)
    known = source.run(source.metadata([journal])).topics.get(journal)
    if known is None or known.error == _NOT_THERE:
        return None
    if known.error is not None:
        # Not knowing what came from the target, we must not send anything: it would come back there, doubled.
        consequence = f"{flow.name} copies nothing: it could send back what {other.name} brought"
        refused = {f"topic {journal}": refusal_named(known.error)}
        demand(flow.source, principal_of(access.settings), "DESCRIBE", refused, consequence)
    ledger = Ledger(topology.ledger_for(other), other.source, other.target)
    proven = bring_up_to_date(ledger, other, access, source, {pair.source for pair in found.pairs})
    spans = mirrored_in(ledger, to_be_passed(found))
    by_place = {_place(pair): pair.source for pair in found.pairs}
    return WayBack({by_place[place]: members for place, members in spans.items()}, dict(proven.data_ends))


def to_be_passed(found: Partitions) -> dict[TargetPartition, int]:
    """The partitions that have something to copy, each with the offset it goes on from."""
    beyond = {}
    for pair, position, end in zip(found.pairs, found.positions, found.last_stable, strict=True):
        ids = (pair.source_topic_id, pair.target_topic_id)
        # A position of an earlier topic, on either side, says nothing about where this one goes on.
        counts = position is not None and (position.source_topic_id, position.target_topic_id) == ids
        offset = position.offset if position is not None and counts else 0
        if offset < end:
            beyond[_place(pair)] = offset
    return beyond


def _place(pair: PartitionPair) -> TargetPartition:
    """The flow's source is the other direction's target."""
    return TargetPartition(str(pair.source_topic_id), pair.partition)


def compacted_both_ways(
    topology: Topology, flow: Flow, source: RawClient, view: ClusterMetadata, topics: Sequence[Topic]
) -> list[Finding]:
    """Topics that are mirrored both ways under one name and compacted: the two sides would not converge."""
    returns = comes_back(topology, flow)
    shared = [topic.name for topic in topics if returns(topic.name)]
    policies = source.run(topic_settings(source, shared, "cleanup.policy")) if shared else {}
    return [
        Finding(
            FindingKind.REFUSED,
            TopicPartition(name, 0),
            0,
            f"{name} is compacted and mirrored both ways between {flow.source} and {flow.target} under one name: the "
            "last value of a key would differ between the two sides, so it is not copied; mirror it one way, or with "
            "prefixed names",
        )
        for name in shared
        if "compact" in policies.get(name, "") and name in view.topics
    ]
