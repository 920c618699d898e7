"""What a cluster's topics tell of where its records come from, as MirrorMaker 2's client tells it.

A flow mirrors the heartbeats of its source, so a cluster has a heartbeats topic for every cluster that reaches it, by
whatever path: `nyc.heartbeats` came from nyc, `lon.nyc.heartbeats` from nyc by way of lon.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from twinlog.model.naming import hops, is_heartbeats


@dataclass(frozen=True, slots=True)
class Upstream:
    """One cluster whose records arrive, over the shortest of the paths that there are."""

    cluster: str
    hops: int
    path: tuple[str, ...]
    """The clusters come through, the latest first; the last is the one where records are produced."""


def upstream_clusters(
    topics: Iterable[str], aliases: frozenset[str], separators: Collection[str] = (".",)
) -> list[Upstream]:
    """Every cluster that reaches the one with these topics, nearest first.

    `separators` are those of the flows into the cluster; a name is read by each.
    """
    shortest: dict[str, Upstream] = {}
    read = ((topic, separator) for topic in topics for separator in separators)
    for topic, separator in read:
        if not is_heartbeats(topic, aliases, separator):
            continue
        path = hops(topic, aliases, separator)
        for count, cluster in enumerate(path, start=1):
            if cluster not in shortest or count < shortest[cluster].hops:
                shortest[cluster] = Upstream(cluster, count, path[:count])
    return sorted(shortest.values(), key=lambda upstream: (upstream.hops, upstream.cluster))


def remote_topics(
    topics: Iterable[str], aliases: frozenset[str], separators: Collection[str] = (".",)
) -> dict[str, tuple[str, ...]]:
    """The topics that were mirrored in under prefixed names, each with the clusters it came through."""
    found = {
        topic: max((hops(topic, aliases, separator) for separator in separators), key=len, default=())
        for topic in topics
    }
    return {topic: path for topic, path in found.items() if path}
