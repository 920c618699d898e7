"""The ready topologies in include/topology: each loads as it is, and has exactly the findings it should have."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from twinlog.intake.topology_file import load
from twinlog.model.estate import check
from twinlog.model.topology import Topology

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "include" / "topology"
PATTERNS = ("active-active", "active-standby", "edge-aggregation", "hub-and-spoke", "migration")


def pattern(name: str) -> Topology:
    return load(FOLDER / f"{name}.yaml", environ={})


def test_all_patterns_are_tested() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.yaml")) == sorted(PATTERNS)


@pytest.mark.parametrize("name", PATTERNS)
def test_it_loads_and_has_no_findings(name: str) -> None:
    topology = pattern(name)
    assert topology.flows
    assert check(topology) == []


@pytest.mark.parametrize("name", PATTERNS)
def test_it_runs_beside_the_target_and_holds_no_secret(name: str) -> None:
    topology = pattern(name)
    for cluster in topology.clusters.values():
        assert cluster.connection is not None
        assert cluster.settings == {}
    disaster_recovery = name in ("active-active", "active-standby", "migration")
    if disaster_recovery:
        for flow in topology.flows.values():
            assert topology.spark_for(flow) == topology.clusters[flow.target].spark is not None
            assert topology.ledger_for(flow) == topology.clusters[flow.target].ledger is not None


@pytest.mark.parametrize("name", PATTERNS)
def test_the_guide_has_its_chapter(name: str) -> None:
    guide = (ROOT / "docs" / "architectures.md").read_text(encoding="utf-8")
    assert f"include/topology/{name}.yaml" in guide
    headings = {
        line.lstrip("#").strip().lower().replace(" ", "-") for line in guide.splitlines() if line.startswith("#")
    }
    assert name in headings
    assert f"docs/architectures.md#{name}" in (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")


def test_active_active_under_one_name_is_warned_of() -> None:
    topology = pattern("active-active")
    same_names = Topology(
        clusters=topology.clusters,
        flows={name: dataclasses.replace(flow, naming="identity") for name, flow in topology.flows.items()},
    )
    assert ["under one name" in finding.message for finding in check(same_names)] == [True]


def test_anchors_that_findings_point_to_exist() -> None:
    guide = (ROOT / "docs" / "architectures.md").read_text(encoding="utf-8").lower()
    for heading in (
        "Stretch cluster",
        "Two-way mirroring under one name",
        "Two paths",
        "Where Spark and the ledger stand",
    ):
        assert f"# {heading.lower()}\n" in guide
