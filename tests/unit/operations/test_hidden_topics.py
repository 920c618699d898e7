from __future__ import annotations

from dataclasses import replace

from twinlog.model.flow import Flow
from twinlog.model.naming import policy_of
from twinlog.model.selection import TopicSelection
from twinlog.model.topology import Cluster, Topology
from twinlog.operations.hidden_topics import mirrored_before, named_by

FLOW = Flow("nyc", "lon", topics=("orders", r"prod\.prices", "shop-.*", "old"), topics_exclude=("old",))
TOPOLOGY = Topology({alias: Cluster(alias, f"{alias}:1") for alias in ("nyc", "lon")}, {FLOW.name: FLOW})


def selection(flow: Flow) -> TopicSelection:
    return TopicSelection(TOPOLOGY, flow)


def test_a_flow_names_what_is_no_pattern_and_is_not_excluded() -> None:
    assert named_by(FLOW, selection(FLOW)) == {"orders", "prod.prices"}


def test_a_flow_whose_topics_somebody_else_chooses_names_none() -> None:
    assert named_by(replace(FLOW, topic_filter="shop:Filter"), selection(FLOW)) == set()


def test_of_twins_those_count_that_the_flow_still_takes() -> None:
    twins = ["nyc.orders", "nyc.shop-a", "nyc.old", "nyc.gone-from-topics", "not-a-twin"]

    assert mirrored_before(twins, policy_of(FLOW), selection(FLOW)) == {"orders", "shop-a"}
