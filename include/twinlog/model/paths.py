"""Which ways a topic takes through an estate, followed by example names.

Whether two patterns have a name in common cannot be read off them, so names are tried: every plain name that a
flow lists, and an example of every pattern. Each is followed from the cluster where it could have been produced,
through the flows that would take it, under the names that it gets on the way. What is found is there; a pattern
too clever to make an example of may hide more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from twinlog.model.filters import topic_filter
from twinlog.model.naming import Identity, NamingPolicy, policy_of
from twinlog.model.selection import TopicSelection
from twinlog.model.topology import Flow, Topology

_ANY = "orders"
# Applied one after the other: a pattern becomes a name that it may well match.
_SIMPLER = (
    (re.compile(r"\((?:\?:)?([^()|]*)(?:\|[^()]*)?\)"), r"\1"),
    (re.compile(r"\.[*+]\??"), _ANY),
    (re.compile(r"\\d"), "1"),
    (re.compile(r"\\w"), "w"),
    (re.compile(r"\[([A-Za-z0-9])[^\]]*\]"), r"\1"),
    (re.compile(r"(?<!\\)[*+?^$]|\{[0-9,]*\}"), ""),
    (re.compile(r"\|.*"), ""),
    (re.compile(r"\\(.)"), r"\1"),
)


@dataclass(frozen=True)
class Crossing:
    """A topic of `origin` that comes to `target` on two paths (flow names), and its name there on each."""

    origin: str
    topic: str
    target: str
    paths: tuple[tuple[str, ...], tuple[str, ...]]
    names: tuple[str, str]


@dataclass(frozen=True)
class _Arrival:
    cluster: str
    name: str
    path: tuple[str, ...]
    through: frozenset[str]


def crossings(topology: Topology) -> Iterator[Crossing]:
    """Every pair of paths that some topic takes to one cluster, each with the first topic found on it."""
    network = _Network(topology)
    seen: set[tuple[tuple[str, ...], ...]] = set()
    topics = example_topics(network.flows)
    for origin in topology.clusters:
        for topic in topics:
            for crossing in network.follow(origin, topic):
                if crossing.paths not in seen:
                    seen.add(crossing.paths)
                    yield crossing


def example_topics(flows: Iterable[Flow]) -> list[str]:
    """Names that the flows' patterns match, at best one a pattern."""
    found: dict[str, None] = {}
    for flow in flows:
        for pattern in flow.topics:
            name = pattern
            for complicated, simple in _SIMPLER:
                name = complicated.sub(simple, name)
            if re.fullmatch(pattern, name):
                found[name] = None
    return list(found)


def share_topics(one: Flow, other: Flow) -> bool:
    """Whether some topic is in both flows; a filter in Python is taken to let everything pass."""
    ours, theirs = topic_filter(one), topic_filter(other)
    return any(ours.accepts(name) and theirs.accepts(name) for name in example_topics([one, other]))


class _Network:
    """The enabled flows, each with its choice of topics and its naming."""

    def __init__(self, topology: Topology) -> None:
        self.flows = [flow for flow in topology.flows.values() if flow.enabled]
        self._selections = {flow.name: TopicSelection(topology, flow) for flow in self.flows}
        self._leaving: dict[str, list[Flow]] = {}
        for flow in self.flows:
            self._leaving.setdefault(flow.source, []).append(flow)

    def follow(self, origin: str, topic: str) -> Iterator[Crossing]:
        """Breadth first, so the shortest path comes first; two arrivals at a cluster are enough to tell."""
        if any(self._selections[flow.name].clusters_behind(origin, topic) for flow in self._leaving.get(origin, ())):
            return  # The name says that it was mirrored to here, so it is followed from where it began.
        arrived: dict[str, list[_Arrival]] = {}
        waiting = [_Arrival(origin, topic, (), frozenset({origin}))]
        for here in waiting:
            for flow in self._leaving.get(here.cluster, ()):
                # Back where it has been it is stopped: by its name, or by the journal where names are kept.
                if flow.target in here.through or self._selections[flow.name].left_out(here.name) is not None:
                    continue
                name = _naming(flow).target_name(here.name)
                there = _Arrival(flow.target, name, (*here.path, flow.name), here.through | {flow.target})
                before = arrived.setdefault(flow.target, [])
                if len(before) == 2:
                    continue
                before.append(there)
                waiting.append(there)
                if len(before) == 2:
                    first, second = before
                    yield Crossing(origin, topic, flow.target, (first.path, second.path), (first.name, second.name))


def _naming(flow: Flow) -> NamingPolicy:
    # What a policy in Python would say is not known here; it is taken to keep names.
    return Identity() if flow.naming_policy is not None else policy_of(flow)
