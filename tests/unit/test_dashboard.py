"""The ready Grafana dashboard shows the metrics that there are, and all of them but those that say otherwise."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from local.places import INCLUDE
from twinlog.model.metrics import REGISTRY

DASHBOARD = INCLUDE / "grafana" / "twinlog.json"


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def expressions(panels: list[dict[str, Any]]) -> list[str]:
    return [target["expr"] for panel in panels for target in panel["targets"]]


def metrics_in(text: str) -> set[str]:
    return set(re.findall(r"twinlog_\w+", text))


def test_every_metric_in_it_exists(dashboard: dict[str, Any]) -> None:
    assert metrics_in(json.dumps(dashboard)) <= set(REGISTRY)


def test_every_metric_is_on_it_unless_documented(panels: list[dict[str, Any]]) -> None:
    shown = metrics_in(" ".join(expressions(panels)))
    assert shown == {metric.name for metric in REGISTRY.values() if metric.dashboard}


def test_every_expression_is_of_the_chosen_flows_by_either_name_and_groups_by_labels_that_there_are(
    panels: list[dict[str, Any]],
) -> None:
    for panel in panels:
        for target in panel["targets"]:
            (name,) = metrics_in(target["expr"])
            # A command's file has the name as it is, and what Airflow sends comes with a prefix.
            assert f'{{__name__=~"(airflow_)?{name}",flow=~"$flow"}}' in target["expr"]
            shown = re.findall(r"{{(\w+)}}", target["legendFormat"])
            grouped = [
                label for labels in re.findall(r"by \(([^)]*)\)", target["expr"]) for label in labels.split(", ")
            ]
            assert set(shown) | set(grouped) <= set(REGISTRY[name].labels), panel["title"]


def test_it_can_be_imported_anywhere(dashboard: dict[str, Any], panels: list[dict[str, Any]]) -> None:
    assert dashboard["uid"] == "twinlog"
    assert [variable["name"] for variable in dashboard["templating"]["list"]] == ["datasource", "flow"]
    assert {panel["datasource"]["uid"] for panel in panels} == {"${datasource}"}
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)


def test_no_two_panels_overlap(dashboard: dict[str, Any]) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert taken.isdisjoint(cells), panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
