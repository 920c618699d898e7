"""The ledger on an object store, by both of the names that it is given there."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
import yaml
from pyarrow import fs

from local.kafka import KafkaClusters
from support.histories import history, rows, some_id
from support.ledger_check import check_twins
from support.mirroring import twins
from support.s3_server import s3_server
from support.source_logs import fill
from twinlog.errors import LedgerError
from twinlog.intake.topology_file import load
from twinlog.ledger.chain import Mark
from twinlog.ledger.compact import Retention, compact
from twinlog.ledger.schema import IN_MEMORY
from twinlog.ledger.store import Ledger
from twinlog.model.offsets import PartitionPair
from twinlog.operations.ledger_upkeep import keep_up

BUCKET = "twinlog-test"


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What the environment says of the s3."""
    with s3_server(tmp_path_factory.mktemp("s3")) as address, pytest.MonkeyPatch.context() as patch:
        told = {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": "something",
            "AWS_DEFAULT_REGION": "eu-west-2",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        for name, value in told.items():
            patch.setenv(name, value)
        # By its address: pyarrow looks for an endpoint in the environment only then.
        storage, path = fs.FileSystem.from_uri(f"s3://{BUCKET}?allow_bucket_creation=true")
        storage.create_dir(path)
        yield told


@pytest.fixture(params=["s3", "s3a"])
def root(request: pytest.FixtureRequest, s3: dict[str, str]) -> str:
    return f"{request.param}://{BUCKET}/{uuid.uuid4().hex}/ledger"


@pytest.fixture
def ledger(s3: dict[str, str]) -> Ledger:
    return Ledger(f"s3://{BUCKET}/{uuid.uuid4().hex}", "nyc", "lon")


def some_rows() -> pa.Table:
    random = Random(7)
    table = rows(history(random, PartitionPair("t", some_id(random), "nyc.t", some_id(random), 1), 200).entries)
    assert table.num_rows > 20
    return table


def mark(total: int) -> Mark:
    return Mark("journal", {0: total})


def listed(table: pa.Table) -> list[dict[str, object]]:
    lines = table.select(IN_MEMORY.names).to_pylist()
    return sorted(lines, key=lambda line: (line["source_start"], line["count"]))


def test_the_topologys_ledger_is_written_read_merged_and_swept(root: str, tmp_path: Path) -> None:
    file = tmp_path / "topology.yaml"
    clusters = {alias: {"bootstrap.servers": "localhost:1"} for alias in ("nyc", "lon")}
    file.write_text(yaml.safe_dump({"clusters": clusters, "ledger": root, "flows": {"nyc->lon": {"topics": ["t"]}}}))
    topology = load(file)
    ledger = Ledger(topology.ledger_for(topology.flow("nyc->lon")), "nyc", "lon")
    assert (ledger.files(), ledger.mark()) == ([], Mark())

    table = some_rows()
    ledger.append(table.slice(0, 5), Mark(), mark(5))
    ledger.append(table.slice(5), mark(5), mark(9))
    assert ledger.mark() == mark(9)
    assert listed(ledger.read()) == listed(table)
    parts = [file.link.name for file in ledger.files()]
    assert len(parts) == 2

    merged = compact(ledger, Retention())
    assert [file.link.name for file in ledger.files()] == [merged.file]
    assert sorted(ledger.sweep(ledger.files()[0].modified_ms)) == sorted(parts)
    assert listed(ledger.read()) == listed(table)
    assert ledger.mark() == mark(9)
    assert ledger.folder.uri.startswith(root)


KILLED = """
import os, signal, sys
from twinlog.ledger.folder import Folder

def die_half_way(folder, path, content):
    stream = folder.filesystem.open_output_stream(path)
    stream.write(content[: len(content) // 2])
    os.kill(os.getpid(), signal.SIGKILL)

Folder._write = die_half_way
Folder(sys.argv[1]).publish("segments", bytes(24 * 1024 * 1024))
"""


def test_a_file_appears_whole_or_not_at_all(ledger: Ledger) -> None:
    died = subprocess.run(
        [sys.executable, "-c", KILLED, ledger.folder.uri], check=False, capture_output=True, timeout=60, env=os.environ
    )
    assert died.returncode == -9, died.stderr.decode()
    assert ledger.folder.files() == []
    content = os.urandom(24 * 1024 * 1024)
    ledger.folder.publish("segments", content)
    assert ledger.folder.read("segments") == content


def test_readers_get_every_row_once_while_files_are_merged_written_anew_and_swept(ledger: Ledger) -> None:
    table = some_rows().slice(0, 20)
    expected = listed(table)
    ledger.append(table.slice(0, 5), Mark(), mark(5))
    done = threading.Event()
    seen: list[list[dict[str, object]]] = []

    def read() -> None:
        while not done.is_set():
            seen.append(listed(ledger.read()))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(5, table.num_rows):
        ledger.append(table.slice(number, 1), mark(number), mark(number + 1))
        compact(ledger, Retention(), everything=True)
        ledger.sweep(time.time_ns() // 1_000_000 + 1_000)
    done.set()
    reader.join(60)
    assert listed(ledger.read()) == expected
    assert len(seen) > 5
    assert all(found == expected[: len(found)] for found in seen)


def test_a_flow_with_its_ledger_there_is_mirrored_and_kept_up(
    s3: dict[str, str], kafka_pair: KafkaClusters, tmp_path: Path
) -> None:
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    flow = twins(kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers, tmp_path, (topic,))
    root = f"s3a://{BUCKET}/{uuid.uuid4().hex}"
    flow = replace(
        flow, topology=replace(flow.topology, ledger=root), ledger=Ledger(root, flow.flow.source, flow.flow.target)
    )
    flow.create(topic)
    for _ in range(2):
        fill(flow.source_servers, topic, range(50))
        assert flow.mirror().failures == []

    done = keep_up(flow.flow, flow.ends().source, flow.ends().target, flow.ledger, keep_days=0)

    assert (done.files_merged, done.rows_after) == (2, done.rows_before)
    assert check_twins(flow, topic) == 100


def test_a_question_mark_in_the_ledgers_place_is_refused_with_what_to_do() -> None:
    with pytest.raises(LedgerError, match="AWS_ENDPOINT_URL"):
        Ledger("s3://bucket/ledger?endpoint_override=localhost:9000", "nyc", "lon")
