from __future__ import annotations

import time

from support.silent import closed_port, silent_server
from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.secrets import ResolvedSettings
from twinlog.errors import SecretError
from twinlog.model.topology import Cluster, Flow, Topology
from twinlog.operations.status import status


def estate(*flows: Flow) -> Topology:
    aliases = {alias for flow in flows for alias in (flow.source, flow.target)}
    clusters = {alias: Cluster(alias, bootstrap_servers="unused:1") for alias in aliases}
    return Topology(clusters=clusters, flows={flow.name: flow for flow in flows})


def access(alias: str, servers: str) -> ClusterAccess:
    return ClusterAccess(alias, ResolvedSettings({"bootstrap.servers": servers}))


def test_many_flows_to_a_hanging_cluster_wait_for_it_once() -> None:
    topology = estate(*(Flow(f"edge{number}", "hub") for number in range(5)))
    with silent_server() as server:
        begun = time.monotonic()
        found = status(topology, lambda _, side: access("hub" if side == "target" else "edge", server), timeout_s=1)
    assert time.monotonic() - begun < 4
    assert [row.state for row in found.flows] == ["unreachable"] * 5
    assert found.exit_code == 3


def test_flows_that_are_not_enabled_are_asked_only_by_name() -> None:
    topology = estate(Flow("nyc", "lon", enabled=False))
    server = closed_port()

    assert status(topology, lambda _, side: access(side, server)).flows == ()
    (row,) = status(topology, lambda _, side: access(side, server), ["nyc->lon"], 1).flows
    assert row.state == "disabled"


def test_a_secret_that_is_missing_is_part_of_the_result() -> None:
    def accesses(flow: Flow, side: str) -> ClusterAccess:
        raise SecretError(f"{flow.name}: no password for the {side}")

    found = status(estate(Flow("nyc", "lon")), accesses)

    assert found.exit_code == 2
    assert found.flows[0].source.error == "nyc->lon: no password for the source"
    assert found.to_json()["unreachable"] == ["lon", "nyc"]
