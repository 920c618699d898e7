"""`twinlog topology view`: which clusters reach which, told from the topics that are there."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
import yaml

from local.kafka import KafkaClusters
from support.mirroring import create_topic
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
