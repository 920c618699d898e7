"""Flows that together would send records in a circle, or mix two sources' records under one name.

Prefixed and custom names carry where they came from, so `twinlog.model.selection` stops them. A name that
stays the same (`identity`, or a naming policy in Python) carries nothing: both ways between two clusters
the journal knows what was mirrored in, but it sees no further, so a longer circle with such a flow in it is
refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from twinlog.model.filters import literal_names
from twinlog.model.flow import Flow
from twinlog.model.naming import Custom, policy_of


@dataclass(frozen=True)
class Conflict:
    """What is wrong between flows; `flow` is the one to change."""

    flow: str
    problem: str


def conflicts(flows: Sequence[Flow]) -> Iterator[Conflict]:
    """Every circle and every shared name among the enabled flows."""
    enabled = [flow for flow in flows if flow.enabled]
    yield from _circles(enabled)
    yield from _shared_names(enabled)


def _circles(flows: Sequence[Flow]) -> Iterator[Conflict]:
    leaving: dict[str, list[Flow]] = {}
    for flow in flows:
        leaving.setdefault(flow.source, []).append(flow)
    reported: set[frozenset[str]] = set()
    for first in filter(_hides_origin, flows):
        circle = _way_back(first, leaving)
        if circle is None or frozenset(circle) in reported:
            continue
        reported.add(frozenset(circle))
        path = " -> ".join([*circle, circle[0]])
        yield Conflict(
            first.name,
            f"{path} is a circle in which this flow hides where records came from, so they would go round "
            "for ever; use naming: prefixed in this flow, or give one of the flows other topics",
        )


def _way_back(first: Flow, leaving: dict[str, list[Flow]]) -> list[str] | None:
    """The clusters of the shortest circle of three or more that begins with a flow and carries its topics."""
    waiting: list[tuple[list[str], list[Flow]]] = [([first.source, first.target], [first])]
    for path, taken in waiting:
        for flow in leaving.get(path[-1], ()):
            if flow.target == first.source and len(path) >= 3 and not _apart([*taken, flow]):
                return path
            if flow.target not in path:
                waiting.append(([*path, flow.target], [*taken, flow]))
    return None


def _hides_origin(flow: Flow) -> bool:
    return flow.naming == "identity" or flow.naming_policy is not None


def _apart(flows: Sequence[Flow]) -> bool:
    """Whether flows that keep names certainly have no topic in common; patterns count as anything."""
    if any(flow.naming != "identity" or flow.topic_filter for flow in flows):
        return False
    named = [literal_names(flow.topics) for flow in flows]
    known = [names for names in named if names is not None]
    return bool(known) and not frozenset.intersection(*known)


def _shared_names(flows: Sequence[Flow]) -> Iterator[Conflict]:
    taken: dict[tuple[str, Custom], list[Flow]] = {}
    for flow in flows:
        if flow.naming != "custom" or flow.naming_policy is not None:
            continue
        policy = policy_of(flow)
        if not isinstance(policy, Custom):
            continue
        earlier = taken.setdefault((flow.target, policy), [])
        for other in earlier:
            ours, theirs = literal_names(flow.topics), literal_names(other.topics)
            if ours is None or theirs is None or ours & theirs:
                yield Conflict(
                    flow.name,
                    f"{other.name} gives topics on {flow.target} the same names, so records of two clusters "
                    "would mix; put ${source} into naming.format",
                )
        earlier.append(flow)
