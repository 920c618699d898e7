"""Of two sites that describe a flow, whose description holds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from twinlog.model.description import Description, adopted, described, why_not
from twinlog.model.flow import Flow
from twinlog.model.topology import Cluster, Topology

HELD = Description("aaaa", 3, "home")


def topology(flow: Flow, **settings: object) -> Topology:
    clusters = {"nyc": Cluster("nyc", "nyc:9092,nyc2:9092"), "lon": Cluster("lon", "lon:9092")}
    return replace(Topology(clusters, {flow.name: flow}, site="home"), **settings)


def digest(flow: Flow, **settings: object) -> str:
    return described(topology(flow, **settings), flow).digest


@pytest.mark.parametrize(
    ("ours", "refused", "holds_then"),
    [
        (Description("aaaa", 3, "elsewhere"), False, HELD),
        (Description("aaaa", 1, "elsewhere"), False, HELD),
        (Description("aaaa", 4, "elsewhere"), False, Description("aaaa", 4, "elsewhere")),
        (Description("bbbb", 4, "elsewhere"), False, Description("bbbb", 4, "elsewhere")),
        (Description("bbbb", 3, "home"), False, Description("bbbb", 3, "home")),
        (Description("bbbb", 3, "elsewhere"), True, None),
        (Description("bbbb", 2, "elsewhere"), True, None),
        (Description("bbbb", 2, "home"), True, None),
    ],
)
def test_what_may_replace_the_description_that_holds(
    ours: Description, refused: bool, holds_then: Description | None
) -> None:
    assert (why_not(HELD, ours, "nyc->lon") is not None) is refused
    if not refused:
        assert adopted(HELD, ours) == holds_then
    assert why_not(None, ours, "nyc->lon") is None
    assert adopted(None, ours) == ours


def test_a_refusal_says_whose_holds_and_what_to_do() -> None:
    held = "nyc->lon runs by version 3 of the topology, as site home has it; site elsewhere "
    assert why_not(HELD, Description("bbbb", 2, "elsewhere"), "nyc->lon") == (
        held + "has version 2 and describes the flow otherwise: bring its file up to date"
    )
    assert why_not(HELD, Description("bbbb", 3, "elsewhere"), "nyc->lon") == (
        held
        + "describes the flow otherwise under the same version: make the files equal, or raise `version` in the one "
        "that is to hold"
    )


def test_a_description_is_of_what_the_flow_does_and_not_of_when_and_where() -> None:
    flow = Flow("nyc", "lon", topics=("orders",))
    before = digest(flow)
    for same in (
        replace(flow, schedule="@continuous", spark="sc://elsewhere:15002", queue="q", ledger="/elsewhere"),
        replace(flow, overrides={"source.consumer.sasl.jaas.config": "${env:OTHER}"}),
    ):
        assert digest(same) == before
    for other in (
        replace(flow, topics=("orders", "payments")),
        replace(flow, naming="identity"),
        replace(flow, overrides={"source.consumer.fetch.max.bytes": "1"}),
    ):
        assert digest(other) != before


def test_it_is_of_its_own_clusters_and_flow_alone() -> None:
    flow = Flow("nyc", "lon", topics=("orders",))
    before = topology(flow)
    added = {**before.clusters, "par": Cluster("par", "par:9092")}
    other = Flow("nyc", "par")
    assert digest(flow, clusters=added, flows={**before.flows, other.name: other}) == digest(flow)
    turned = {**before.clusters, "nyc": Cluster("nyc", "nyc2:9092,nyc:9092")}
    moved = {**before.clusters, "nyc": Cluster("nyc", "nyc3:9092")}
    assert digest(flow, clusters=turned) == digest(flow)
    assert digest(flow, clusters=moved) != digest(flow)


def test_a_topology_without_a_version_has_the_lowest() -> None:
    flow = Flow("nyc", "lon")
    assert described(topology(flow), flow).version == 0
    assert described(topology(flow, version=7), flow).version == 7
    assert described(topology(flow), flow).site == "home"
