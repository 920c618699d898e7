"""Messages of formats 0 and 1, which no client writes any more, in the log of a real broker, which still serves them.

A broker that is stopped is given another log, and takes it for what it had: without its indexes, and without the word
that it was stopped cleanly, it reads all of it again.
"""

from __future__ import annotations

import gzip
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.kafka import KafkaCluster, KafkaClusters, KafkaSpec, start
from support.mirroring import Twins, create_topic, twins
from support.reading import Seen
from support.record_bytes import legacy
from support.source_logs import fill

STAMP_MS = 1_500_000_000_000
GZIP = 1


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with start([KafkaSpec("old")], tmp_path_factory.mktemp("old")) as clusters:
        yield clusters["old"]


@pytest.fixture
def flow(old: KafkaCluster, kafka_pair: KafkaClusters, tmp_path: Path) -> Twins:
    topic = f"ancient-{uuid.uuid4().hex[:8]}"
    return twins(old.bootstrap_servers, kafka_pair["lon"].bootstrap_servers, tmp_path, (topic,))


def replace_logs(cluster: KafkaCluster, topic: str, logs: list[bytes]) -> None:
    """Each partition's log becomes these bytes."""
    create_topic(cluster.bootstrap_servers, topic, len(logs), {})
    for partition in range(len(logs)):
        fill(cluster.bootstrap_servers, topic, ["to be replaced"], partition)
    cluster.stop_broker(0)
    (data,) = {found.parent.parent for found in cluster.folder.rglob(f"{topic}-0/*.log")}
    for partition, log in enumerate(logs):
        folder = data / f"{topic}-{partition}"
        for file in folder.iterdir():
            if file.suffix in (".index", ".timeindex", ".snapshot") or file.name == "leader-epoch-checkpoint":
                file.unlink()
        (folder / f"{0:020}.log").write_bytes(log)
    (data / ".kafka_cleanshutdown").unlink()
    cluster.restart_broker(0)


def five(magic: int) -> bytes:
    return b"".join(
        legacy(number, magic, b"key", str(number).encode(), timestamp=STAMP_MS + number) for number in range(5)
    )


def test_readers_see_the_messages_of_old_formats_as_on_the_source(flow: Twins, old: KafkaCluster) -> None:
    (topic,) = flow.flow.topics
    ancient, old_ones = (five(magic) for magic in (0, 1))
    # Inside a compressed set of format 1, offsets begin at 0; the wrapper has that of the last.
    wrapped = legacy(4, 1, None, gzip.compress(old_ones), timestamp=STAMP_MS + 4, attributes=GZIP)
    replace_logs(old, topic, [ancient, old_ones, wrapped])
    fill(flow.source_servers, topic, ["of today"], 1)

    result = flow.mirror()

    assert result.failures == []
    assert result.recorded.records == 16
    assert result.recorded.gaps == {}
    source, target = flow.read_source(topic), flow.read_target(topic)
    assert [record.value for record in target[0]] == [b"0", b"1", b"2", b"3", b"4"]
    assert target[1] == source[1]
    assert target[2] == source[2]
    # Format 0 has no stamps: readers of the source are told so, those of the twin are given -1.
    assert [Seen(*record[:3], (0, -1)) for record in source[0]] == [Seen(*record[:3], (0, -1)) for record in target[0]]
    assert {record.timestamp[1] for record in target[0]} == {-1}
