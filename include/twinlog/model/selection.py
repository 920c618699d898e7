"""Which topics of its source a flow mirrors, and for every other one the reason why not.

A topic that has come from the flow's target, by whatever path its name tells, is never sent back, but by a way home
(`model.way_home`), which is there for that: prefixed and custom names are taken apart again and again, through every
flow that could have made them. Each step makes the name shorter, so this ends, and a name cannot grow round a circle.
Where a name tells nothing (`identity`), the circle of two is broken by the journal, and longer ones are refused when
the topology is read (`twinlog.model.loops`).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from twinlog.model.canary import canary_topic
from twinlog.model.filters import NameFilter, topic_filter
from twinlog.model.flow import Flow
from twinlog.model.naming import Identity, NamingPolicy, hops, is_heartbeats, is_internal, policy_of
from twinlog.model.topology import Topology
from twinlog.model.way_home import WayHome


class LeftOut(enum.Enum):
    """Why a topic is not mirrored."""

    INTERNAL = "it is an internal topic"
    CAME_FROM_TARGET = "it came from the flow's target"
    FILTERED = "the flow's filter does not take it"


class TopicSelection:
    """One flow's choice among the topics of its source.

    `policies` and `accepted` are given where Python entry points take the place of a flow's naming or filter.
    """

    def __init__(
        self,
        topology: Topology,
        flow: Flow,
        policies: Mapping[str, NamingPolicy] | None = None,
        accepted: NameFilter | None = None,
    ) -> None:
        self._flow = flow
        self._aliases = frozenset(topology.clusters)
        self._filter = accepted or topic_filter(flow)
        self._into: dict[str, list[tuple[str, NamingPolicy]]] = {}
        for listed in topology.flows.values():
            # By its way home a flow makes no names of its own.
            other = listed.listed if isinstance(listed, WayHome) else listed
            if other is None:
                continue
            given = (policies or {}).get(other.name)
            policy = given or (policy_of(other) if other.naming_policy is None else Identity())
            if not isinstance(policy, Identity):
                self._into.setdefault(other.target, []).append((other.source, policy))

    def left_out(self, topic: str) -> LeftOut | None:
        """Why a topic of the source is not mirrored, or None where it is."""
        if topic == self._flow.schemas_topic:
            # Named on purpose, whatever else its name looks like.
            return None
        if is_internal(topic, self._flow.replication_policy_separator):
            return LeftOut.INTERNAL
        if isinstance(self._flow, WayHome):
            return None if self._filter.accepts(topic) else LeftOut.FILTERED
        if self._flow.target in self.clusters_behind(self._flow.source, topic):
            return LeftOut.CAME_FROM_TARGET
        return None if self.is_sign(topic) or self._filter.accepts(topic) else LeftOut.FILTERED

    def is_sign(self, topic: str) -> bool:
        """Whether a topic shows that flows live, and is mirrored whatever the filter says."""
        flow = self._flow
        if flow.canary_enabled and topic == canary_topic(flow.source):
            return True
        return flow.heartbeats_replication_enabled and is_heartbeats(
            topic, self._aliases, flow.replication_policy_separator
        )

    def clusters_behind(self, cluster: str, topic: str) -> frozenset[str]:
        """Every cluster that a topic of this name may have come through on its way to a cluster."""
        behind: set[str] = set(hops(topic, self._aliases, self._flow.replication_policy_separator))
        waiting = [(cluster, topic)]
        while waiting:
            here, name = waiting.pop()
            for source, policy in self._into.get(here, ()):
                before = policy.source_name(name)
                if before is not None and len(before) < len(name):
                    behind.add(source)
                    waiting.append((source, before))
        return frozenset(behind)
