from __future__ import annotations

from twinlog.model.topology import Cluster, Flow, Topology
from twinlog.operations.view import separators


def test_a_cluster_s_names_are_read_by_the_separators_of_all_flows_into_it() -> None:
    flows = [
        Flow("hub", "par"),
        Flow("nyc", "hub", replication_policy_separator="_"),
        Flow("lon", "hub", replication_policy_separator="-"),
    ]
    clusters = {alias: Cluster(alias, "host:9092") for alias in ("hub", "par", "nyc", "lon")}
    topology = Topology(clusters, {flow.name: flow for flow in flows})

    assert separators(topology, "hub") == ["-", "_"]
    assert separators(topology, "par") == ["."]
    assert separators(topology, "nyc") == ["_"]
