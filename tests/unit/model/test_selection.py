"""Which topics a flow takes; that no record comes back is shown where the journal has a say too (operations)."""

from __future__ import annotations

from twinlog.model.flow import Flow
from twinlog.model.selection import LeftOut, TopicSelection
from twinlog.model.topology import Cluster, Topology


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
