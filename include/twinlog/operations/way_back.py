"""Two-way mirroring: what came from the target is not sent back to it.

The other direction's journal lies on this flow's source and says exactly which offsets there it wrote. They are taken
behind the barrier, and a run copies no further than the barrier proves: whatever becomes visible later is left for the
next run. No header is needed, and no record goes round. What is not known for certain, since an ACL is missing, keeps
a topic from being copied and never the rest of the flow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.metadata import Topic
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import demand, principal_of, refusal_named, sentences
from twinlog.cluster.topic_settings import SettingsRead, read_settings
from twinlog.errors import NotAuthorizedError
from twinlog.ledger.returned import TargetPartition, mirrored_in
from twinlog.ledger.store import Ledger
from twinlog.model.findings import Finding, FindingKind
from twinlog.model.lanes import journal_topic
from twinlog.model.offsets import PartitionPair, Span, TopicPartition
from twinlog.model.plan import Partitions
from twinlog.model.topology import Flow, Topology
from twinlog.model.way_home import WayHome
from twinlog.operations.directions import brought_by, comes_back, opposite_flow, unlisted_opposite
from twinlog.operations.recording import bring_up_to_date
from twinlog.operations.twin_planning import Sides

_POLICY = "cleanup.policy"
_UNKNOWN_POLICY = "compact"
"""What is taken for granted of a broker that does not say."""


@dataclass(frozen=True)
class WayBack:
    """The spans of each source partition that the other direction wrote, and how far that is proven."""

    spans: dict[TopicPartition, list[Span]]
    proven: dict[TopicPartition, int]
    unknown: Mapping[str, str] = field(default_factory=dict)
    """The source's topics of which it may not be known, each with the reason."""

    @property
    def findings(self) -> list[Finding]:
        return [
            _refused(topic, f"{topic} is not copied: {reason}", FindingKind.NOT_ALLOWED)
            for topic, reason in self.unknown.items()
        ]

    def bounded(self, found: Partitions) -> Partitions:
        """The survey without the topics of which nothing is known, and nowhere beyond what is proven; each partition
        with what is not to be sent back."""
        found = found.where(lambda pair: pair.source_topic not in self.unknown)
        ends = [
            min(end, self.proven.get(pair.source, end))
            for pair, end in zip(found.pairs, found.last_stable, strict=True)
        ]
        return replace(found, last_stable=ends, returned=[self.spans.get(pair.source, ()) for pair in found.pairs])


def way_back(
    topology: Topology, flow: Flow, access: ClusterAccess, source: RawClient, found: Partitions
) -> WayBack | None:
    """What the other direction wrote to the source; None where it can't have written to any of these partitions.

    That it is disabled now changes nothing about what it wrote before, nor that it was taken out of the topology, or
    that another file lists it. Where its journal may not be read, the topics that it can have written to are left out,
    each with a finding, and the others are copied.
    """
    listed = opposite_flow(topology, flow)
    other = listed or unlisted_opposite(flow)
    shared = shared_with(flow, other, found)
    if shared is None or not meets_another(topology, flow, source):
        return None
    try:
        return _read(topology, flow, other, access, source, shared, listed=listed is not None)
    except NotAuthorizedError as refused:
        # Not knowing what came from the target, we must not send these: it would come back there, doubled.
        reason = f"it could send back what {other.name} brought: {refused}"
        return WayBack({}, {}, {pair.source_topic: reason for pair in shared.pairs})


def meets_another(topology: Topology, flow: Flow, source: RawClient) -> bool:
    """Whether a flow of the other direction writes to the source, or did: one that is listed, or has left a journal."""
    if opposite_flow(topology, flow) is not None:
        return True
    journal = journal_topic(flow.target, flow.source)
    # Kafka does not tell a topic that is hidden from one that is not there, as this one is with most flows.
    return source.run(source.metadata([journal])).topics[journal].error is None


def _read(  # noqa: PLR0917 - the two flows, and how the cluster between them is reached
    topology: Topology,
    flow: Flow,
    other: Flow,
    access: ClusterAccess,
    source: RawClient,
    shared: Partitions,
    *,
    listed: bool,
) -> WayBack | None:
    journal = journal_topic(other.source, other.target)
    known = source.run(source.metadata([journal])).topics.get(journal)
    if known is None or known.is_missing:
        return None
    if known.error is not None:
        refused = {f"topic {journal}": refusal_named(known.error)}
        consequence = "what it brought is not known"
        demand(flow.source, principal_of(access.settings), "DESCRIBE", refused, consequence)
    ledger = Ledger(topology.ledger_for(other), other.source, other.target)
    proven = bring_up_to_date(ledger, other, access, source, {pair.source for pair in shared.pairs})
    return WayBack(spans_to_pass(ledger, shared, of_this_target=not listed), dict(proven.data_ends))


def shared_with(flow: Flow, other: Flow, found: Partitions) -> Partitions | None:
    """The partitions that the other direction may have written to; None where there are none."""
    brought = brought_by(other)
    anew = flow.anew if isinstance(flow, WayHome) else frozenset()
    shared = found.where(lambda pair: brought(pair.source_topic) and pair.source_topic not in anew)
    return shared if shared.pairs else None


def spans_to_pass(
    ledger: Ledger, shared: Partitions, *, of_this_target: bool = False
) -> dict[TopicPartition, list[Span]]:
    """What the other direction, whose ledger this is, has written to partitions that have something to copy.

    With `of_this_target`, only what came from the very topics that are the target's now: what a flow that nobody lists
    any more once brought from a cluster that is lost is to go to the one that is built in its place.
    """
    came_from = {_place(pair): str(pair.target_topic_id) for pair in shared.pairs} if of_this_target else None
    spans = mirrored_in(ledger, to_be_passed(shared), came_from)
    by_place = {_place(pair): pair.source for pair in shared.pairs}
    return {by_place[place]: members for place, members in spans.items()}


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


def compacted_both_ways(topology: Topology, flow: Flow, sides: Sides, topics: Sequence[Topic]) -> list[Finding]:
    """Topics that are mirrored both ways under one name, and are compacted, or may be, on either side.

    A way home is not concerned: the two directions take turns, and each begins where the other has ended.
    """
    if isinstance(flow, WayHome) or isinstance(opposite_flow(topology, flow), WayHome):
        return []
    returns = comes_back(topology, flow)
    shared = [topic.name for topic in topics if returns(topic.name)]
    there = [name for name in shared if name in sides.target_view.topics]
    found: dict[str, Finding] = {}
    for client, names in ((sides.source, shared), (sides.target, there)):
        if names:
            read = client.run(read_settings(client, names, [_POLICY]))
            for finding in not_converging(flow, client.alias, client.principal, read):
                found.setdefault(finding.partition.topic, finding)
    return list(found.values())


def not_converging(flow: Flow, cluster: str, principal: str, read: SettingsRead) -> list[Finding]:
    """Of topics that are mirrored both ways under one name, those whose two sides would not, or might not, converge."""
    compacted = [
        _refused(
            name,
            f"{name} is compacted on {cluster} and mirrored both ways between {flow.source} and {flow.target} "
            "under one name: the last value of a key would differ between the two sides, so it is not copied; mirror "
            "it one way, or with prefixed names",
        )
        for name, settings in read.topics.items()
        if "compact" in settings.effective.get(_POLICY, _UNKNOWN_POLICY)
    ]
    consequence = f"it is not copied: mirrored both ways under one name it must not be compacted, and {_POLICY} says it"
    return compacted + [
        _refused(name, sentence, FindingKind.NOT_ALLOWED if found.not_allowed else FindingKind.REFUSED)
        for name, found in read.refused.items()
        for sentence in sentences(cluster, principal, "DESCRIBE_CONFIGS", {f"topic {name}": found}, consequence)
    ]


def _refused(topic: str, message: str, kind: FindingKind = FindingKind.REFUSED) -> Finding:
    return Finding(kind, TopicPartition(topic, 0), 0, message)
