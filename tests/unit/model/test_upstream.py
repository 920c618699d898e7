from __future__ import annotations

from twinlog.model.upstream import Upstream, remote_topics, upstream_clusters

ALIASES = frozenset({"nyc", "lon", "par"})


def test_clusters_are_found_by_their_heartbeats_over_the_shortest_path() -> None:
    topics = ["heartbeats", "nyc.heartbeats", "lon.nyc.heartbeats", "lon.par.heartbeats", "nyc.orders", "x.heartbeats"]
    assert upstream_clusters(topics, ALIASES) == [
        Upstream("lon", 1, ("lon",)),
        Upstream("nyc", 1, ("nyc",)),
        Upstream("par", 2, ("lon", "par")),
    ]


def test_a_cluster_that_nothing_reaches_has_no_upstream() -> None:
    assert upstream_clusters(["heartbeats", "orders"], ALIASES) == []


def test_names_are_read_by_every_separator_of_the_flows_into_a_cluster() -> None:
    topics = ["nyc.heartbeats", "lon_heartbeats", "nyc.orders", "lon_orders"]

    assert [found.cluster for found in upstream_clusters(topics, ALIASES, [".", "_"])] == ["lon", "nyc"]
    assert remote_topics(topics[2:], ALIASES, [".", "_"]) == {"nyc.orders": ("nyc",), "lon_orders": ("lon",)}


def test_remote_topics_with_their_paths() -> None:
    topics = ["orders", "nyc.orders", "lon.nyc.orders", "prod.orders"]
    assert remote_topics(topics, ALIASES) == {"nyc.orders": ("nyc",), "lon.nyc.orders": ("lon", "nyc")}
