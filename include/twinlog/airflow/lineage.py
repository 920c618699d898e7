"""What a run updates, for other DAGs and for lineage: an asset a topic on the target, one for the ledger, and
OpenLineage's datasets.

    kafka://lon/nyc.orders      the twin on lon of the topic orders of nyc
    twinlog://lon/ledger/nyc    the flow's ledger

A DAG that is scheduled on one of them runs after each run that brought something, and finds in the event's extra
`mirrored_until`: all that was on the source by then, of this topic, can be read on the target. It is None where the run
left something behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias

if TYPE_CHECKING:
    from airflow.sdk import Context

    from twinlog.model.topology import Flow, Topology

GROUP = "twinlog"
MOST_EVENTS = 500
"""Topics with an event of their own, a run: each costs Airflow some rows. The ledger's says how many have none."""

_FIGURES = ("flow", "run", "seconds", "partitions", "left_records", "mirrored_until_ms")


def topic_asset(cluster: str, topic: str) -> Asset:
    """The asset of one topic on one cluster, by alias."""
    return Asset(f"kafka://{cluster}/{topic}", group=GROUP)


def ledger_asset(flow: Flow) -> Asset:
    """The asset of a flow's ledger."""
    return Asset(name=f"ledger {flow.name}", uri=f"twinlog://{flow.target}/ledger/{flow.source}", group=GROUP)


def outlets(flow: Flow) -> list[Asset | AssetAlias]:
    """What the recording task of a flow updates; which topics, a run knows only then."""
    return [ledger_asset(flow), topics_alias(flow)]


def topics_alias(flow: Flow) -> AssetAlias:
    return AssetAlias(f"twins {flow.name}", group=GROUP)


def update_assets(context: Context, flow: Flow, twins: Sequence[str], *, result: Mapping[str, Any]) -> None:
    """Tell whoever waits for them that these topics of the target have more in them now."""
    until_ms = result["mirrored_until_ms"]
    extra: dict[str, Any] = {
        "flow": flow.name,
        "run": result["run"],
        "mirrored_until": None if until_ms is None else moment(until_ms),
    }
    events = context["outlet_events"]
    told = twins[:MOST_EVENTS]
    for twin in told:
        events[topics_alias(flow)].add(topic_asset(flow.target, twin), extra=extra)
    events[ledger_asset(flow)].extra = {
        **extra,
        "records": result["records"],
        "bytes": result["bytes"],
        "topics": len(twins),
        "topics_without_event": len(twins) - len(told),
    }


def moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def openlineage(topology: Topology, flow: Flow, topics: Mapping[str, str], copied: Mapping[str, Any]) -> Any:
    """What the copying task read and wrote, each source topic with its twin; None where OpenLineage is not installed.

    Datasets are named as OpenLineage has it for Kafka, by the broker that is asked first.
    """
    try:
        from airflow.providers.openlineage.extractors import OperatorLineage  # noqa: PLC0415 - it may not be there
        from openlineage.client.event_v2 import Dataset  # noqa: PLC0415 - as above
        from openlineage.client.generated.base import RunFacet  # noqa: PLC0415 - as above
    except ImportError:
        return None
    figures = {name: copied.get(name) for name in _FIGURES}
    source, target = (_namespace(topology, alias) for alias in (flow.source, flow.target))
    return OperatorLineage(
        inputs=[Dataset(namespace=source, name=name) for name in topics],
        outputs=[Dataset(namespace=target, name=twin) for twin in topics.values()],
        run_facets={"twinlog": RunFacet().with_additional_properties(**figures)},
    )


def _namespace(topology: Topology, alias: str) -> str:
    return f"kafka://{topology.clusters[alias].bootstrap_servers.partition(',')[0].strip()}"
