"""What of a flow is on both sides once its source has returned: the topics that go home, how each of their partitions
fits its position, and what of the source lies beyond.

The topics that go home are those that were mirrored: the target's twins for which there is a position, or, where the
target has forgotten it in the meantime, an entry of the ledger. Signs of life stay where they are.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from twinlog.cluster.committed import fetch_positions
from twinlog.cluster.inventory import settled_offsets
from twinlog.cluster.log_offsets import OffsetAt
from twinlog.cluster.metadata import ClusterMetadata
from twinlog.cluster.raw import RawClient
from twinlog.intake.extensions import naming_of, topics_of
from twinlog.ledger.last_positions import last_positions
from twinlog.ledger.pairs import recorded_pairs
from twinlog.ledger.store import Ledger
from twinlog.model.failback import Damage, DamagedPartition
from twinlog.model.findings import Finding, FindingKind
from twinlog.model.lanes import position_group
from twinlog.model.naming import NamingPolicy
from twinlog.model.offsets import TopicPartition
from twinlog.model.plan import Partitions
from twinlog.model.positions import Position
from twinlog.model.selection import TopicSelection
from twinlog.model.topology import Flow, Topology
from twinlog.model.way_home import WayHome
from twinlog.operations.directions import with_way_home
from twinlog.operations.recording import bring_up_to_date
from twinlog.operations.run_scope import Ends
from twinlog.operations.survey import Survey, survey
from twinlog.operations.way_back import way_back

SETTLES_WITHIN_S = 10.0
PAUSE_S = 0.2


@dataclass(frozen=True)
class Mirrored:
    """What a flow has mirrored of the topics that go home, by the twin."""

    positions: Mapping[TopicPartition, Position]
    forgotten: Mapping[TopicPartition, Position]
    """Of them, those that the target no longer remembers."""
    replaced: frozenset[str] = frozenset()
    """Twins that were deleted and created again since; nobody knows what came into them from where."""
    gone: frozenset[str] = frozenset()
    """Twins that are no longer there."""

    @property
    def topics(self) -> list[str]:
        return sorted({twin.topic for twin in self.positions} | self.replaced)


@dataclass(frozen=True)
class FailbackSurvey:
    """A flow and everything that looking at both its sides needs."""

    topology: Topology
    flow: Flow
    ends: Ends
    ledger: Ledger

    @cached_property
    def _went(self) -> tuple[Topology, WayHome]:
        return with_way_home(self.topology, self.flow)

    @property
    def policy(self) -> NamingPolicy:
        return naming_of(self.flow)

    def mirrored(self, target: RawClient) -> Mirrored:
        """Every partition that goes home."""
        goes = topics_of(self._went[1])
        known = target.run(fetch_positions(target, position_group(self.flow.name)))
        bring_up_to_date(self.ledger, self.flow, self.ends.target, target, set())
        recorded = [pair for pair in recorded_pairs(self.ledger)[0] if goes.accepts(pair.target_topic)]
        known = {twin: position for twin, position in known.items() if goes.accepts(twin.topic)}
        forgotten = last_positions(self.ledger, [pair for pair in recorded if pair.target not in known])
        names = {twin.topic for twin in known} | {pair.target_topic for pair in recorded}
        view = target.run(target.metadata(names)).topics if names else {}
        ids = {name: topic.topic_id for name, topic in view.items() if topic.error is None}

        def current(positions: Mapping[TopicPartition, Position]) -> dict[TopicPartition, Position]:
            return {
                twin: position
                for twin, position in positions.items()
                if ids.get(twin.topic) == position.target_topic_id
            }

        positions = {**current(forgotten), **current(known)}
        kept = {twin.topic for twin in positions}
        return Mirrored(
            positions,
            current(forgotten),
            frozenset(name for name in names - kept if name in ids),
            frozenset(name for name in names - kept if name not in ids and view[name].is_missing),
        )

    def names(self, mirrored: Mirrored) -> dict[str, str]:
        """The topics that go home, each with its name there."""
        policy = self.policy
        return {twin: name for twin in mirrored.topics if (name := policy.source_name(twin)) is not None}

    def partitions(
        self, source: RawClient, target: RawClient, mirrored: Mirrored
    ) -> tuple[Partitions, tuple[Finding, ...]]:
        """The mirrored partitions that are on both sides, with their positions, forgotten ones too, and what came from
        the target; and what keeps others from being looked at."""
        asked = [name for twin, name in self.names(mirrored).items() if twin not in mirrored.replaced]
        there = source.run(source.metadata(asked)).topics if asked else {}
        # Those that are gone, `missing` tells of.
        names = [name for name in asked if not there[name].is_missing]
        seen = self._settled(source, target, names)
        positions = [mirrored.positions.get(pair.target) for pair in seen.partitions.pairs]
        found = replace(seen.partitions, positions=positions)
        back = way_back(self._went[0], self.flow, self.ends.source, source, found)
        if back is None:
            return found, seen.findings
        # What the way home brought may have become visible after it was read how much it was: no further than proven.
        return back.bounded(found), (*seen.findings, *back.findings)

    def _settled(self, source: RawClient, target: RawClient, names: Sequence[str]) -> Survey:
        """With no transaction open on the source, if those that are come to an end soon, as a run's of the way home."""
        deadline = time.monotonic() + SETTLES_WITHIN_S
        while True:
            seen = target.run(survey(source, target, self.flow, self.policy, names, in_step=False))
            held_back = any(one.kind is FindingKind.HELD_BACK for one in seen.findings)
            if not held_back or time.monotonic() > deadline:
                return seen
            source.run(source.pause(PAUSE_S))

    def missing(self, mirrored: Mirrored, view: ClusterMetadata) -> Iterator[DamagedPartition]:
        """What was mirrored and is not on the source any more, and what was made anew on the target."""
        for twin, position in mirrored.positions.items():
            name = self.policy.source_name(twin.topic)
            topic = None if name is None else view.topics.get(name)
            if name is not None and (topic is None or twin.partition >= len(topic.partitions)):
                was = f"topic {position.source_topic_id}"
                yield DamagedPartition(name, twin.partition, Damage.MISSING, was, "nothing")
        for name in sorted(mirrored.replaced):
            home = self.policy.source_name(name)
            if home is not None:
                yield DamagedPartition(home, 0, Damage.REPLACED, f"the earlier {name}", "another topic")

    def never_mirrored(self, source: RawClient, view: ClusterMetadata, mirrored: Mirrored) -> dict[str, int]:
        """The source's topics that have records in partitions which never began to cross, and how many offsets."""
        policy, replaced = self.policy, mirrored.replaced | mirrored.gone
        named = {other.name: naming_of(other) for other in self.topology.flows.values() if other.naming_policy}
        selection = TopicSelection(self.topology, self.flow, named, topics_of(self.flow))
        partitions = [
            TopicPartition(topic.name, number)
            for topic in view.topics.values()
            if selection.left_out(topic.name) is None and not selection.is_sign(topic.name)
            for number in range(len(topic.partitions))
            if TopicPartition(policy.target_name(topic.name), number) not in mirrored.positions
            and policy.target_name(topic.name) not in replaced
        ]
        if not partitions:
            return {}
        ends = source.run(settled_offsets(source, view, partitions, OffsetAt.LAST_STABLE)).offsets
        starts = source.run(settled_offsets(source, view, partitions, OffsetAt.LOG_START)).offsets
        found: dict[str, int] = {}
        for one in partitions:
            waiting = ends.get(one, 0) - starts.get(one, 0)
            if waiting > 0:
                found[one.topic] = found.get(one.topic, 0) + waiting
        return found
