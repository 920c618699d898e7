"""Which value of a client property holds."""

from __future__ import annotations

import pytest

from twinlog.errors import SettingError
from twinlog.model.client_settings import (
    check_cluster_property,
    check_flow_property,
    client_settings,
    cluster_settings,
)
from twinlog.model.clients import PROPERTIES
from twinlog.model.topology import Cluster, Flow, Topology

LAYERS = (
    ("profile", None),
    ("cluster", "fetch.max.bytes"),
    ("cluster", "consumer.fetch.max.bytes"),
    ("flow", "consumer.fetch.max.bytes"),
    ("flow", "source.consumer.fetch.max.bytes"),
)


def effective(cluster: dict[str, str], flow: dict[str, str], role: str = "consumer", **more: str) -> dict[str, str]:
    clusters = {"a": Cluster("a", "a:1", settings=cluster), "b": Cluster("b", "b:1")}
    made = Flow("a", "b", overrides=flow, **more)  # type: ignore[arg-type]
    return client_settings(Topology(clusters, {made.name: made}), made, "source", role)


@pytest.mark.parametrize("strongest", range(len(LAYERS)))
def test_the_strongest_layer_holds(strongest: int) -> None:
    given: dict[str, dict[str, str]] = {"cluster": {}, "flow": {}}
    for number, (layer, key) in enumerate(LAYERS[: strongest + 1]):
        if key:
            given[layer][key] = str(number)
    expected = str(strongest) if strongest else PROPERTIES["fetch.max.bytes"].lan
    assert effective(given["cluster"], given["flow"])["fetch.max.bytes"] == expected


def test_the_other_side_and_other_roles_are_left_alone() -> None:
    flow = {"target.consumer.client.id": "x", "producer.client.id": "y"}
    assert effective({}, flow)["client.id"] == "twinlog"


def test_a_property_without_role_reaches_only_clients_that_know_it() -> None:
    cluster = {"fetch.max.bytes": "1", "client.id": "me"}
    producer = effective(cluster, {}, role="producer")
    assert "fetch.max.bytes" not in producer
    assert producer["client.id"] == "me"


def test_the_profile_is_the_flows() -> None:
    assert effective({}, {}, profile="wan")["request.timeout.ms"] == "120000"
    assert effective({}, {})["request.timeout.ms"] == "30000"


def test_references_stay_and_bootstrap_servers_are_there() -> None:
    cluster = Cluster("a", "a:1,a:2", settings={"sasl.password": "${env:P}"})
    merged = cluster_settings(cluster, "admin")
    assert merged["bootstrap.servers"] == "a:1,a:2"
    assert merged["sasl.password"] == "${env:P}"


def test_wan_waits_longer_and_buffers_more() -> None:
    for item in PROPERTIES.values():
        if item.lan and item.lan.isdigit():
            assert item.wan is not None
            assert int(item.wan) >= int(item.lan), item.name


@pytest.mark.parametrize("key", ["client.id", "consumer.client.rack", "producer.max.request.size"])
def test_cluster_properties(key: str) -> None:
    check_cluster_property(key)


@pytest.mark.parametrize(
    "key", ["client.id", "source.client.id", "source.cluster.client.id", "consumer.max.request.size"]
)
def test_what_a_flow_may_not_say(key: str) -> None:
    with pytest.raises(SettingError):
        check_flow_property(key)
