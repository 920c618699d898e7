"""The pass at the end of a run fails no run."""

from __future__ import annotations

from pathlib import Path

from support.silent import closed_port
from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.secrets import ResolvedSettings
from twinlog.ledger.store import Ledger
from twinlog.model.topology import Cluster, Flow, Topology
from twinlog.operations.checkpoint import Checkpointing


def test_a_storage_that_fails_becomes_a_note(tmp_path: Path) -> None:
    in_the_way = tmp_path / "_readiness" / "source=nyc" / "target=lon"
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_text("no folder")
    flow = Flow("nyc", "lon", emit_checkpoints_enabled=True)
    topology = Topology(
        {alias: Cluster(alias, bootstrap_servers="unused:1") for alias in ("nyc", "lon")}, {flow.name: flow}
    )
    access = ClusterAccess("nyc", ResolvedSettings({"bootstrap.servers": closed_port()}))
    checkpointing = Checkpointing(topology, flow, access, access, Ledger(str(tmp_path), "nyc", "lon"))

    (note,) = checkpointing.run_if_due()

    assert "the groups were not checkpointed" in note
    assert str(in_the_way) in note
