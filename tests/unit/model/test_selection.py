"""Which topics a flow takes, and that no record comes back to the cluster it was produced on."""

from __future__ import annotations

import itertools

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from twinlog.model.flow import Flow
from twinlog.model.loops import conflicts
from twinlog.model.naming import policy_of
from twinlog.model.selection import LeftOut, TopicSelection
from twinlog.model.topology import Cluster, Topology

ALIASES = ("a", "b", "c", "d", "e", "f")


def topology(*flows: Flow) -> Topology:
    aliases = {alias for flow in flows for alias in (flow.source, flow.target)}
    return Topology({alias: Cluster(alias, f"{alias}:1") for alias in aliases}, {flow.name: flow for flow in flows})


def test_the_reason_is_named() -> None:
    flow = Flow("a", "b", topics=("orders", r"b\..*", "c.*"))
    selection = TopicSelection(topology(flow, Flow("b", "a")), flow)
    assert selection.left_out("orders") is None
    assert selection.left_out("heartbeats") is None
    assert selection.left_out("payments") is LeftOut.FILTERED
    assert selection.left_out("b.orders") is LeftOut.CAME_FROM_TARGET
    assert selection.left_out("b.heartbeats") is LeftOut.CAME_FROM_TARGET
    assert selection.left_out("a.checkpoints.internal") is LeftOut.INTERNAL


def test_heartbeats_follow_the_filter_where_the_flow_says_so() -> None:
    flow = Flow("a", "b", topics=("orders",), heartbeats_replication_enabled=False)
    assert TopicSelection(topology(flow), flow).left_out("heartbeats") is LeftOut.FILTERED


def test_a_custom_name_is_not_sent_back_and_does_not_grow() -> None:
    there = Flow("a", "b", naming="custom", naming_format="${topic}.copy")
    back = Flow("b", "a", naming="custom", naming_format="${topic}.copy")
    both = topology(there, back)
    assert TopicSelection(both, back).left_out("orders.copy") is LeftOut.CAME_FROM_TARGET
    assert TopicSelection(both, back).left_out("orders") is None


def test_separators_may_differ_between_flows() -> None:
    first, last = Flow("a", "b", replication_policy_separator="_"), Flow("b", "a")
    assert TopicSelection(topology(first, last), last).left_out("a_orders") is LeftOut.CAME_FROM_TARGET


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


@given(estates(), st.sampled_from(["orders", "heartbeats", "a.orders", "b.a.orders", "orders.copy", "all.orders"]))
@settings(max_examples=300, deadline=None)
def test_no_record_returns_and_no_name_grows_for_ever(estate: Topology, topic: str) -> None:
    selections = {flow.name: TopicSelection(estate, flow) for flow in estate.flows.values()}
    # (the clusters that a record has been on, the last of them where it is, and its topic there)
    waiting: list[tuple[tuple[str, ...], str]] = [((alias,), topic) for alias in estate.clusters]
    while waiting:
        path, name = waiting.pop()
        for flow in estate.flows.values():
            # The journal of the way in knows which records came from the other side of a pair.
            came_that_way = path[-2:-1] == (flow.target,)
            if flow.source != path[-1] or came_that_way or selections[flow.name].left_out(name):
                continue
            # So a path has no more steps than there are clusters, and a name no more prefixes.
            assert flow.target not in path, f"{topic} of {path[0]} would return by {flow.name} after {path}"
            waiting.append(((*path, flow.target), policy_of(flow).target_name(name)))
