"""How much of a flow one sync looks at, and by whose rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.metadata import ClusterMetadata
from twinlog.cluster.refusals import principal_of
from twinlog.intake.extensions import configs_of, groups_of, naming_of, topics_of
from twinlog.model.acls import AclMode
from twinlog.model.description import Description, described
from twinlog.model.filters import NameFilter
from twinlog.model.lanes import journal_topic
from twinlog.model.made import Made
from twinlog.model.naming import NamingPolicy
from twinlog.model.selection import TopicSelection
from twinlog.model.topology import Flow, Topology
from twinlog.model.twin_topics import TopicFacts
from twinlog.operations.directions import brought_by, comes_back, opposite_flow, unlisted_opposite


@dataclass(frozen=True, slots=True)
class Scope:
    """What is compared; the topics themselves always are."""

    every_setting: bool = True
    """Of every twin; otherwise of those only that are about to be created."""
    acls: bool = True
    clients: bool = True
    """Quotas and SCRAM users."""
    topics: frozenset[str] | None = None
    """Only these topics of the source; None for all that the flow takes."""
    new: bool = True
    """Twins that are missing too, and partitions; otherwise only those that show that flows live."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What Twinlog has made: this flow on the target, and the flow of the opposite direction on the source.

    What the opposite flow made came from the target. It is never sent back there: an ACL that is revoked on one side
    would come back from the other, and a setting that is removed as well.
    """

    here: Made
    opposite: Made
    may_have_come: Callable[[str], bool]
    """Whether the opposite flow can have made a topic of the source, by its name."""
    lost_here: str | None = None
    lost_opposite: str | None = None
    """Why it can't be read, and what is not done for that, in a sentence; what is known is then nothing."""
    holds: bool = False
    """A migration is under way that keeps the target from deleting and compacting."""

    @property
    def lost(self) -> list[str]:
        return [sentence for sentence in (self.lost_here, self.lost_opposite) if sentence is not None]

    def made(self, name: str, twin: TopicFacts) -> bool:
        """Whether this flow made this topic of the target."""
        known = self.here.topics.get(name)
        return known is not None and known.target_id == twin.topic_id

    def came_back(self, topic: str, topic_id: UUID | None) -> bool:
        """Whether the opposite flow made this topic of the source, or may have where that can't be known."""
        if self.lost_opposite is not None:
            return self.may_have_come(topic)
        known = self.opposite.topics.get(topic)
        return known is not None and known.target_id == topic_id


@dataclass(frozen=True)
class SyncRules:
    """One flow, with everything that decides what its target should look like."""

    flow: Flow
    selection: TopicSelection
    policy: NamingPolicy
    settings: NameFilter
    groups: NameFilter
    source_principal: str
    target_principal: str
    may_have_come: Callable[[str], bool]
    """Whether a topic of the source has a name that the flow of the opposite direction could have made."""
    description: Description
    """How this site describes the flow."""
    has_opposite: bool
    """Whether the topology lists that flow; a flow of another topology is known only by what it left behind."""
    led_by_both: Callable[[str], bool] = lambda _: False
    """Whether a topic of the source is mirrored back under its name, and the flow that does it keeps settings too."""

    def takes(self, topic: str) -> bool:
        return self.selection.left_out(topic) is None

    @property
    def acl_mode(self) -> AclMode:
        return AclMode(self.flow.sync_topic_acls_mode)


def sync_rules(topology: Topology, flow: Flow, source: ClusterAccess, target: ClusterAccess) -> SyncRules:
    """The rules of a flow, with the filters and the naming that people wrote in Python."""
    opposite = opposite_flow(topology, flow)
    named = {other.name: naming_of(other) for other in topology.flows.values() if other.naming_policy}
    return SyncRules(
        flow,
        TopicSelection(topology, flow, named, topics_of(flow)),
        naming_of(flow),
        configs_of(flow),
        groups_of(flow),
        principal_of(source.settings),
        principal_of(target.settings),
        brought_by(opposite or unlisted_opposite(flow)),
        described(topology, flow),
        opposite is not None,
        comes_back(topology, flow) if opposite is not None and opposite.sync_topic_configs_enabled else lambda _: False,
    )


def keeps_to_twins(flow: Flow, target: ClusterMetadata) -> bool:
    """Whether a run takes only what has a twin: the flow looks for nothing new, and has run before."""
    return not flow.refresh_topics_enabled and journal_topic(flow.source, flow.target) in target.topics


def scope_of_a_run(flow: Flow, made: Made, now_ms: int, topics: frozenset[str] | None) -> Scope:
    """What a mirror run compares: new topics always, the rest as often as the flow's intervals say."""
    if topics is not None:
        return Scope(every_setting=False, acls=False, clients=False, topics=topics)
    configs_due = now_ms - made.configs_compared_ms >= flow.sync_topic_configs_interval_seconds * 1000
    acls_due = now_ms - made.acls_compared_ms >= flow.sync_topic_acls_interval_seconds * 1000
    return Scope(
        every_setting=flow.sync_topic_configs_enabled and configs_due,
        acls=flow.sync_topic_acls_enabled and acls_due,
        clients=False,
    )
