from __future__ import annotations

import functools

from twinlog.model.naming import Custom, Identity, Prefixed
from twinlog.model.upstream import Names, Origin, Upstream, remote_topics, upstream_clusters

ALIASES = frozenset({"nyc", "lon", "par"})
HERE = "hub"


def read(**said: object) -> functools.partial[Origin]:
    return functools.partial(Names(ALIASES, **said).origin, HERE)  # type: ignore[arg-type]


def test_clusters_are_found_by_their_heartbeats_over_the_shortest_path() -> None:
    topics = ["heartbeats", "nyc.heartbeats", "lon.nyc.heartbeats", "lon.par.heartbeats", "nyc.orders", "x.heartbeats"]
    assert upstream_clusters(topics, read()) == [
        Upstream("lon", 1, ("lon",)),
        Upstream("nyc", 1, ("nyc",)),
        Upstream("par", 2, ("lon", "par")),
    ]


def test_a_cluster_that_nothing_reaches_has_no_upstream() -> None:
    assert upstream_clusters(["heartbeats", "orders"], read()) == []


def test_names_are_read_by_every_separator_of_the_flows_into_a_cluster() -> None:
    topics = ["nyc.heartbeats", "lon_heartbeats", "nyc.orders", "lon_orders"]
    by_both = read(separators={HERE: [".", "_"]})

    assert [found.cluster for found in upstream_clusters(topics, by_both)] == ["lon", "nyc"]
    assert remote_topics(topics[2:], by_both) == {"nyc.orders": ("nyc",), "lon_orders": ("lon",)}


def test_remote_topics_with_their_paths() -> None:
    topics = ["orders", "nyc.orders", "lon.nyc.orders", "prod.orders"]
    assert remote_topics(topics, read()) == {"nyc.orders": ("nyc",), "lon.nyc.orders": ("lon", "nyc")}


def test_names_are_read_as_the_flows_give_them_cluster_by_cluster() -> None:
    flows = {
        HERE: [("nyc", Custom("", ".replica")), ("lon", Identity("lon."))],
        "nyc": [("par", Custom("from-", "")), ("tok", Prefixed("tok~"))],
    }
    by_flows = read(flows_into=flows)
    topics = ["orders.replica", "from-orders.replica", "tok~heartbeats.replica", "lon.heartbeats", "from-orders"]

    assert remote_topics(topics, by_flows) == {
        "orders.replica": ("nyc",),
        "from-orders.replica": ("nyc", "par"),
        "tok~heartbeats.replica": ("nyc", "tok"),
        "lon.heartbeats": ("lon",),
    }
    assert [(found.cluster, found.path) for found in upstream_clusters(topics, by_flows)] == [
        ("lon", ("lon",)),
        ("nyc", ("nyc",)),
        ("tok", ("nyc", "tok")),
    ]
