from __future__ import annotations

from dataclasses import replace

import pytest

from twinlog.model.topology import Cluster, Flow, Topology
from twinlog.operations.directions import brought_by, comes_back, opposite_flow, other_direction

THERE = Flow("nyc", "lon", naming="identity", topics=("orders",))
BACK = Flow("lon", "nyc", naming="identity", topics=("orders",))


def topology(*flows: Flow) -> Topology:
    return Topology({alias: Cluster(alias, "host:9092") for alias in ("nyc", "lon")}, {one.name: one for one in flows})


def test_a_flow_that_is_disabled_brings_nothing_back_but_what_it_brought_is_still_its() -> None:
    disabled = replace(BACK, enabled=False)
    estate = topology(THERE, disabled)

    assert other_direction(topology(THERE, BACK), THERE) == BACK
    assert other_direction(estate, THERE) is None
    assert not comes_back(estate, THERE)("orders")
    assert opposite_flow(estate, THERE) == disabled


def test_a_topic_comes_back_where_it_is_taken_both_ways_under_one_name() -> None:
    both = comes_back(topology(THERE, BACK), THERE)

    assert (both("orders"), both("payments")) == (True, False)
    assert not comes_back(topology(THERE), THERE)("orders")


@pytest.mark.parametrize(
    ("naming", "topic", "brought"),
    [
        ("identity", "orders", True),
        # It may have been taken once; a filter tells only of now.
        ("identity", "payments", True),
        ("prefixed", "orders", False),
        ("prefixed", "lon.orders", True),
    ],
)
def test_what_a_flow_may_have_written_to_is_told_by_the_name(naming: str, topic: str, brought: bool) -> None:
    assert brought_by(replace(BACK, naming=naming))(topic) is brought
