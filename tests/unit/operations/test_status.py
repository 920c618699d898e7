from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from support.silent import closed_port, silent_server
from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.secrets import ResolvedSettings
from twinlog.errors import SecretError
from twinlog.ledger.store import Ledger
from twinlog.model.topology import Cluster, Flow, Topology
from twinlog.operations.readiness import SCHEMA, Readiness, ReadinessTables
from twinlog.operations.status import status


def estate(*flows: Flow) -> Topology:
    aliases = {alias for flow in flows for alias in (flow.source, flow.target)}
    clusters = {alias: Cluster(alias, bootstrap_servers="unused:1") for alias in aliases}
    return Topology(clusters=clusters, flows={flow.name: flow for flow in flows})


def access(alias: str, servers: str) -> ClusterAccess:
    return ClusterAccess(alias, ResolvedSettings({"bootstrap.servers": servers}))


def test_many_flows_to_a_hanging_cluster_wait_for_it_once() -> None:
    topology = estate(*(Flow(f"edge{number}", "hub") for number in range(20)))
    with silent_server() as server:
        begun = time.monotonic()
        found = status(topology, lambda _, side: access("hub" if side == "target" else "edge", server), timeout_s=1)
    assert time.monotonic() - begun < 20 * 1
    assert [row.state for row in found.flows] == ["unreachable"] * 20
    assert found.exit_code == 3


def test_flows_that_are_not_enabled_are_asked_only_by_name() -> None:
    topology = estate(Flow("nyc", "lon", enabled=False))
    server = closed_port()

    assert status(topology, lambda _, side: access(side, server)).flows == ()
    (row,) = status(topology, lambda _, side: access(side, server), ["nyc->lon"], 1).flows
    assert row.state == "disabled"


def test_a_secret_that_is_missing_is_part_of_the_result() -> None:
    def accesses(flow: Flow, side: str) -> ClusterAccess:
        raise SecretError(f"{flow.name}: no password for the {side}")

    found = status(estate(Flow("nyc", "lon")), accesses)

    assert found.exit_code == 2
    assert found.flows[0].source.error == "nyc->lon: no password for the source"
    assert found.to_json()["unreachable"] == ["lon", "nyc"]


def test_what_the_last_pass_knew_of_groups_says_how_old_it_is(tmp_path: Path) -> None:
    topology = replace(estate(Flow("nyc", "lon")), ledger=str(tmp_path))
    an_hour_ago = int((time.time() - 3_600) * 1000)
    row = {"flow": "nyc->lon", "at_ms": an_hour_ago, "group": "billing", "ready": True}
    table = SCHEMA.empty_table().from_pylist([row], schema=SCHEMA)
    ReadinessTables(Ledger(str(tmp_path), "nyc", "lon")).write(Readiness(an_hour_ago, table))
    server = closed_port()

    found = status(topology, lambda _, side: access(side, server), timeout_s=1)

    (flow,) = found.to_json()["flows"]
    assert flow["groups_ready"] == 1
    assert datetime.fromisoformat(flow["groups_as_of"]).timestamp() == an_hour_ago // 1000
    assert 3_600 <= flow["groups_age_s"] < 3_700


def test_a_damaged_table_of_groups_is_told_and_the_rest_is_shown(tmp_path: Path) -> None:
    topology = replace(estate(Flow("nyc", "lon")), ledger=str(tmp_path))
    folder = tmp_path / "_readiness" / "source=nyc" / "target=lon"
    folder.mkdir(parents=True)
    (folder / "readiness-000000000000001.parquet").write_bytes(b"PAR1 and nothing more")
    server = closed_port()

    found = status(topology, lambda _, side: access(side, server), timeout_s=1)

    (flow,) = found.flows
    assert flow.groups_ready is None
    assert flow.problem is not None
    assert "how ready groups were can't be read" in flow.problem
