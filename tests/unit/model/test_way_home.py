from __future__ import annotations

import pytest

from twinlog.errors import ConfigurationError
from twinlog.intake.extensions import naming_of, topics_of
from twinlog.model.description import described
from twinlog.model.flow import Flow
from twinlog.model.selection import LeftOut, TopicSelection
from twinlog.model.topology import Cluster, Topology
from twinlog.model.way_home import way_home
from twinlog.operations.directions import with_way_home


def estate(*flows: Flow) -> Topology:
    return Topology({name: Cluster(name, f"{name}:1") for name in ("nyc", "lon")}, {flow.name: flow for flow in flows})


@pytest.mark.parametrize(
    ("naming", "twin"),
    [
        ({"naming": "prefixed"}, "nyc.orders"),
        ({"naming": "identity"}, "orders"),
        ({"naming": "custom", "naming_format": "${topic}.replica"}, "orders.replica"),
    ],
)
def test_it_undoes_the_naming_and_takes_what_the_flow_takes(naming: dict[str, str], twin: str) -> None:
    flow = Flow("nyc", "lon", topics=("orders", "heartbeats"), **naming)  # type: ignore[arg-type]
    topology, home = with_way_home(estate(flow), flow)
    assert (home.name, home.source, home.target) == ("lon->nyc", "lon", "nyc")
    assert topology.flow("lon->nyc") is home
    assert naming_of(home).target_name(twin) == "orders"
    assert naming_of(home).source_name("orders") == twin
    assert naming_of(flow).source_name(naming_of(flow).target_name("orders")) == "orders"
    selection = TopicSelection(topology, home, accepted=topics_of(home))
    assert selection.left_out(twin) is None, "although it came from nyc"
    assert selection.left_out(naming_of(flow).target_name("payments")) is LeftOut.FILTERED
    assert selection.left_out(naming_of(flow).target_name("heartbeats")) is LeftOut.FILTERED
    assert selection.left_out("twinlog.nyc.lon.journal.internal") is LeftOut.INTERNAL


def test_what_is_the_targets_own_under_prefixed_names_stays() -> None:
    flow = Flow("nyc", "lon", topics=("orders",))
    home = way_home(flow)
    assert not topics_of(home).accepts("orders")


def test_client_properties_change_sides() -> None:
    flow = Flow("nyc", "lon", overrides={"source.consumer.fetch.max.bytes": "1", "target.producer.acks": "all"})
    assert way_home(flow).overrides == {"target.consumer.fetch.max.bytes": "1", "source.producer.acks": "all"}


def test_it_runs_by_the_description_of_the_flow_whose_name_it_shares() -> None:
    onward, listed = Flow("nyc", "lon"), Flow("lon", "nyc", lanes=3)
    topology, home = with_way_home(estate(onward, listed), onward)
    assert described(topology, home) == described(estate(onward, listed), listed)
    assert home.lanes == 3, "the lanes are those of the journal that it writes to"


def test_names_that_could_not_be_told_apart_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="could not be told apart"):
        way_home(Flow("nyc", "lon"), Flow("lon", "nyc", naming="identity"))
