from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from twinlog.airflow.lineage import MOST_EVENTS, ledger_asset, moment, openlineage, outlets, topics_alias, update_assets
from twinlog.model.flow import Flow
from twinlog.model.topology import Cluster, Topology

FLOW = Flow("nyc", "lon")
TOPOLOGY = Topology(
    clusters={"nyc": Cluster("nyc", "nyc1:9092, nyc2:9092"), "lon": Cluster("lon", "lon1:9092")},
    flows={FLOW.name: FLOW},
)
RESULT = {"run": "r", "records": 3, "bytes": 30, "mirrored_until_ms": 1_700_000_000_250}


class Events:
    """What a task's `outlet_events` take."""

    def __init__(self) -> None:
        self.extra: Mapping[str, Any] = {}
        self.added: dict[str, Mapping[str, Any]] = {}

    def add(self, asset: Any, extra: Mapping[str, Any]) -> None:
        self.added[asset.uri] = extra


def updated(twins: list[str], result: Mapping[str, Any] = RESULT) -> tuple[Events, Events]:
    events: defaultdict[Any, Events] = defaultdict(Events)
    update_assets({"outlet_events": events}, FLOW, twins, result=result)  # type: ignore[typeddict-item]
    assert set(events) <= set(outlets(FLOW)), "Airflow takes events of what the task has declared only"
    return events[topics_alias(FLOW)], events[ledger_asset(FLOW)]


def test_each_topic_and_the_ledger_are_updated_with_up_to_when_all_is_there() -> None:
    topics, ledger = updated(["nyc.orders"])
    until = "2023-11-14T22:13:20.250Z"
    assert topics.added == {"kafka://lon/nyc.orders": {"flow": "nyc->lon", "run": "r", "mirrored_until": until}}
    assert ledger.extra["mirrored_until"] == until
    assert (ledger.extra["records"], ledger.extra["topics"], ledger.extra["topics_without_event"]) == (3, 1, 0)


def test_a_run_that_left_something_says_so_by_saying_no_time() -> None:
    topics, ledger = updated(["nyc.orders"], {**RESULT, "mirrored_until_ms": None})
    assert topics.added["kafka://lon/nyc.orders"]["mirrored_until"] is None
    assert ledger.extra["mirrored_until"] is None


def test_ever_so_many_topics_do_not_flood_airflow_and_the_rest_is_counted() -> None:
    topics, ledger = updated([f"nyc.t{number}" for number in range(MOST_EVENTS + 2)])
    assert len(topics.added) == MOST_EVENTS
    assert ledger.extra["topics_without_event"] == 2


def test_a_moment_is_in_universal_time() -> None:
    assert moment(0) == "1970-01-01T00:00:00.000Z"


def test_without_openlineage_there_is_no_lineage() -> None:
    if "openlineage" in sys.modules:
        pytest.skip("OpenLineage is installed")
    assert openlineage(TOPOLOGY, FLOW, {"orders": "nyc.orders"}, {}) is None


def test_with_openlineage_the_topics_and_the_figures_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    # Stands for the provider, which is not among what Twinlog needs; these are the parts that are called.
    def having(name: str, **parts: Any) -> None:
        module = ModuleType(name)
        vars(module).update(parts)
        monkeypatch.setitem(sys.modules, name, module)

    class Facet:
        def with_additional_properties(self, **properties: Any) -> dict[str, Any]:
            return properties

    for name in ("airflow.providers.openlineage", "openlineage", "openlineage.client", "openlineage.client.generated"):
        having(name)
    having("airflow.providers.openlineage.extractors", OperatorLineage=SimpleNamespace)
    having("openlineage.client.event_v2", Dataset=SimpleNamespace)
    having("openlineage.client.generated.base", RunFacet=Facet)

    told = openlineage(TOPOLOGY, FLOW, {"orders": "nyc.orders"}, {"run": "r", "flow": "nyc->lon", "seconds": 1.5})
    assert [vars(one) for one in told.inputs] == [{"namespace": "kafka://nyc1:9092", "name": "orders"}]
    assert [vars(one) for one in told.outputs] == [{"namespace": "kafka://lon1:9092", "name": "nyc.orders"}]
    assert told.run_facets["twinlog"]["run"] == "r"
    assert told.run_facets["twinlog"]["seconds"] == 1.5
