"""The pass at the end of a run: when it is due, and that it fails no run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from support.silent import closed_port
from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.secrets import ResolvedSettings
from twinlog.ledger.store import Ledger
from twinlog.model.topology import Cluster, Flow, Topology
from twinlog.operations.checkpoint import Checkpointing
from twinlog.operations.readiness import SCHEMA, Readiness, ReadinessTables


@pytest.fixture
def checkpointing(tmp_path: Path) -> Checkpointing:
    flow = Flow("nyc", "lon", emit_checkpoints_enabled=True, emit_checkpoints_interval_seconds=60)
    topology = Topology(
        {alias: Cluster(alias, bootstrap_servers="unused:1") for alias in ("nyc", "lon")}, {flow.name: flow}
    )
    access = ClusterAccess("nyc", ResolvedSettings({"bootstrap.servers": closed_port()}))
    return Checkpointing(topology, flow, access, access, Ledger(str(tmp_path), "nyc", "lon"))


def test_a_storage_that_fails_becomes_a_note(tmp_path: Path, checkpointing: Checkpointing) -> None:
    in_the_way = tmp_path / "_readiness" / "source=nyc" / "target=lon"
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_text("no folder")

    (note,) = checkpointing.run_if_due()

    assert "the groups were not checkpointed" in note
    assert str(in_the_way) in note


@pytest.mark.parametrize(("age_s", "due"), [(0, False), (50, False), (70, True), (-3600, True)])
def test_a_pass_is_due_after_its_interval_and_where_a_clock_was_ahead(
    tmp_path: Path, checkpointing: Checkpointing, age_s: int, due: bool
) -> None:
    at_ms = int((time.time() - age_s) * 1000)
    assert checkpointing.due()

    ReadinessTables(Ledger(str(tmp_path), "nyc", "lon")).write(Readiness(at_ms, SCHEMA.empty_table()))

    assert checkpointing.due() is due
