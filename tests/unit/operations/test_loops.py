"""No record comes back to the cluster it was produced on, whatever flows there are: by its topic's name, and where that
tells nothing by the journal of the way that it came."""

from __future__ import annotations

import itertools

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from twinlog.model.flow import Flow
from twinlog.model.loops import conflicts
from twinlog.model.naming import policy_of
from twinlog.model.selection import TopicSelection
from twinlog.model.topology import Cluster, Topology
from twinlog.operations.directions import brought_by, opposite_flow

ALIASES = ("a", "b", "c", "d", "e", "f")


def topology(*flows: Flow) -> Topology:
    aliases = {alias for flow in flows for alias in (flow.source, flow.target)}
    return Topology({alias: Cluster(alias, f"{alias}:1") for alias in aliases}, {flow.name: flow for flow in flows})


@st.composite
def estates(draw: st.DrawFn) -> Topology:
    aliases = ALIASES[: draw(st.integers(2, 6))]
    pairs = draw(st.lists(st.sampled_from(list(itertools.permutations(aliases, 2))), min_size=1, unique=True))
    flows = [
        Flow(
            source,
            target,
            topics_exclude=(),
            naming=draw(st.sampled_from(["prefixed", "prefixed", "identity", "custom"])),
            naming_format=draw(st.sampled_from(["${topic}.copy", "${source}-${topic}", "all.${topic}"])),
            replication_policy_separator=draw(st.sampled_from([".", "_"])),
        )
        for source, target in pairs
    ]
    assume(not list(conflicts(flows)))
    return topology(*flows)


def sends(estate: Topology, selection: TopicSelection, flow: Flow, topic: str, came_by: str | None) -> bool:
    """Whether a flow copies a record from a topic of its source, to which the flow `came_by` brought it."""
    if selection.left_out(topic) is not None:
        return False
    opposite = opposite_flow(estate, flow)
    # The opposite flow's journal is read for the topics that it may have written to, and knows what it wrote.
    return opposite is None or opposite.name != came_by or not brought_by(opposite)(topic)


@given(estates(), st.sampled_from(["orders", "heartbeats", "a.orders", "b.a.orders", "orders.copy", "all.orders"]))
@settings(max_examples=300, deadline=None)
def test_no_record_returns_and_no_name_grows_for_ever(estate: Topology, topic: str) -> None:
    selections = {flow.name: TopicSelection(estate, flow) for flow in estate.flows.values()}
    # (the clusters that a record has been on, the last of them where it is; its topic there; the flow that brought it)
    waiting: list[tuple[tuple[str, ...], str, str | None]] = [((alias,), topic, None) for alias in estate.clusters]
    while waiting:
        path, name, came_by = waiting.pop()
        for flow in estate.flows.values():
            if flow.source != path[-1] or not sends(estate, selections[flow.name], flow, name, came_by):
                continue
            # So a path has no more steps than there are clusters, and a name no more prefixes.
            assert flow.target not in path, f"{topic} of {path[0]} would return by {flow.name} after {path}"
            waiting.append(((*path, flow.target), policy_of(flow).target_name(name), flow.name))
