"""`twinlog topology view`: which clusters reach which, told from the topics that are there."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
import yaml

from local.kafka import KafkaClusters
from support.mirroring import create_topic, twins
from support.source_logs import fill
from twinlog import cli


def test_upstream_clusters_hops_and_remote_topics(
    kafka_pair: KafkaClusters, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = uuid.uuid4().hex[:6]
    par, nyc, lon = (f"{name}{mark}" for name in ("par", "nyc", "lon"))
    servers = {"nyc": kafka_pair["nyc"].bootstrap_servers, "lon": kafka_pair["lon"].bootstrap_servers}
    for topic in (f"{nyc}.heartbeats", f"{nyc}.{par}.heartbeats", f"{nyc}.orders"):
        create_topic(servers["lon"], topic, 1, {})
    create_topic(servers["nyc"], f"{par}.heartbeats", 1, {})
    file = tmp_path / "topology.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "clusters": {
                    par: {"bootstrap.servers": "127.0.0.1:1"},
                    nyc: {"bootstrap.servers": servers["nyc"]},
                    lon: {"bootstrap.servers": servers["lon"]},
                },
                "flows": {f"{par}->{nyc}": {}, f"{nyc}->{lon}": {}},
            }
        )
    )

    code = cli.main(["--topology", str(file), "--json", "topology", "view", "--timeout", "10"])

    found = {row["cluster"]: row for row in json.loads(capsys.readouterr().out)["clusters"]}
    assert code == 3
    assert "could not be reached" in found[par]["error"]
    assert [(one["cluster"], one["hops"]) for one in found[nyc]["upstream"]] == [(par, 1)]
    assert [(one["cluster"], one["hops"], one["path"]) for one in found[lon]["upstream"]] == [
        (nyc, 1, [nyc]),
        (par, 2, [nyc, par]),
    ]
    assert found[lon]["remote_topics"] == sorted([f"{nyc}.heartbeats", f"{nyc}.{par}.heartbeats", f"{nyc}.orders"])


def test_names_that_a_flow_gives_or_keeps_are_told_too(
    kafka_pair: KafkaClusters, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = uuid.uuid4().hex[:6]
    servers = {name: kafka_pair[name].bootstrap_servers for name in ("nyc", "lon")}
    kept = twins(servers["nyc"], servers["lon"], tmp_path, (f"kept-{mark}",), naming="identity")
    kept.create(f"kept-{mark}")
    fill(servers["nyc"], f"kept-{mark}", range(3))
    assert kept.mirror().failures == []
    for topic in (f"orders-{mark}.copy-{mark}", f"heartbeats.copy-{mark}", f"own-{mark}"):
        create_topic(servers["lon"], topic, 1, {})
    nyc, lon, par = kept.flow.source, kept.flow.target, f"par{mark}"
    file = tmp_path / "topology.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "clusters": {
                    nyc: {"bootstrap.servers": servers["nyc"]},
                    lon: {"bootstrap.servers": servers["lon"]},
                    par: {"bootstrap.servers": servers["nyc"]},
                },
                "flows": {
                    kept.flow.name: {"naming": "identity"},
                    f"{par}->{lon}": {"naming": "custom", "naming.format": f"${{topic}}.copy-{mark}"},
                },
            }
        )
    )

    code = cli.main(["--topology", str(file), "--json", "topology", "view", "--timeout", "10"])

    found = {row["cluster"]: row for row in json.loads(capsys.readouterr().out)["clusters"]}
    assert code == 0
    assert [(one["cluster"], one["path"]) for one in found[lon]["upstream"]] == [(par, [par])]
    remote = [topic for topic in found[lon]["remote_topics"] if mark in topic]
    assert remote == [f"heartbeats.copy-{mark}", f"kept-{mark}", f"orders-{mark}.copy-{mark}"]
