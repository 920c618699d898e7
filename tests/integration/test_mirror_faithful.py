"""What readers of the twin see is what readers of the source saw, record by record, whatever the source's log holds.

All topics are filled, then copied in one run, then each is compared by itself.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from local.kafka import KafkaClusters
from support.mirroring import Twins, create_topic, producer, twins
from support.reading import Seen
from support.reconciling import DEEP, FULL, reconcile
from support.source_logs import (
    COMPACTED,
    compacted_log,
    delete_records,
    fill,
    interleave,
    source_batches,
    target_batches,
    transactional,
)
from twinlog.model.reconciliation import Kind
from twinlog.operations.mirror_result import MirrorResult
from twinlog.operations.reconcile import Scope

IN_2001_MS = 1_000_000_000_000
SPLIT_BYTES = 100_000
"""What the twin of `split` takes at once, far less than the source's batch."""


def nulls_and_headers(servers: str, topic: str) -> None:
    writer = producer(servers)
    for key, value in ((None, None), (None, b"value"), (b"key", None), (b"", b""), (b"key", b"value")):
        for headers in ([], [("a", b"1"), ("a", b"2"), ("a", b"1")], [("", b""), ("none", None), ("é", "é".encode())]):
            writer.produce(topic, value, key, headers=headers)
    assert writer.flush(30) == 0


def compressed(codec: str) -> Callable[[str, str], None]:
    def write(servers: str, topic: str) -> None:
        fill(servers, topic, [f"value {number} {'x' * 100}" for number in range(300)], compression_type=codec)

    return write


def old_stamps(servers: str, topic: str) -> None:
    writer = producer(servers)
    for number in range(50):
        writer.produce(topic, f"value {number}", timestamp=IN_2001_MS + 1_000 * (number % 7))
    assert writer.flush(30) == 0


def idempotent(servers: str, topic: str) -> None:
    fill(servers, topic, range(200), enable_idempotence=True, batch_num_messages=20)


def only_aborted(servers: str, topic: str) -> None:
    writer = transactional(servers)
    for _ in range(3):
        writer.begin_transaction()
        writer.produce(topic, "never seen")
        writer.flush(30)
        writer.abort_transaction(30)


def straddling(servers: str, topic: str) -> None:
    """One batch of ten of which the first four are deleted: a fetch at 4 still brings all ten."""
    fill(servers, topic, range(10), linger_ms=200)
    delete_records(servers, topic, 4)


def large_batch(servers: str, topic: str) -> None:
    fill(servers, topic, [f"{number}" + "x" * 5_000 for number in range(150)], linger_ms=300, batch_size=1_000_000)


def far_from_zero(servers: str, topic: str) -> None:
    fill(servers, topic, range(5_000))
    delete_records(servers, topic, 4_900)


@dataclass(frozen=True)
class Case:
    """How a topic is filled, and its settings."""

    write: Callable[[str, str], None]
    settings: dict[str, str]


CASES = {
    "nulls and headers": Case(nulls_and_headers, {}),
    **{f"compressed {codec}": Case(compressed(codec), {}) for codec in ("none", "gzip", "snappy", "lz4", "zstd")},
    "old stamps": Case(old_stamps, {"retention.ms": "-1"}),
    "idempotent": Case(idempotent, {}),
    "interleaved transactions": Case(interleave, {}),
    "only aborted": Case(only_aborted, {}),
    "log append time": Case(old_stamps, {"message.timestamp.type": "LogAppendTime"}),
    "compacted": Case(compacted_log, COMPACTED),
    "straddling": Case(straddling, {}),
    "split": Case(large_batch, {}),
    "many small batches": Case(lambda s, t: fill(s, t, range(400), batch_num_messages=1, linger_ms=0), {}),
    "far from zero": Case(far_from_zero, {}),
    "empty": Case(lambda _servers, _topic: None, {}),
}


@dataclass(frozen=True)
class Copied:
    """All topics after one run."""

    flow: Twins
    topics: dict[str, str]
    result: MirrorResult
    again: MirrorResult


@pytest.fixture(scope="module")
def copied(kafka_pair: KafkaClusters, tmp_path_factory: pytest.TempPathFactory) -> Copied:
    folder: Path = tmp_path_factory.mktemp("faithful")
    topics = {name: f"{name.replace(' ', '-')}-{uuid.uuid4().hex[:6]}" for name in CASES}
    source, target = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    flow = twins(source, target, folder, tuple(topics.values()), sync_topic_configs_enabled=False)
    # Made beforehand and left as they are: one takes little at once, in the other nothing is compacted meanwhile.
    create_topic(target, flow.twin(topics["split"]), 1, {"max.message.bytes": str(SPLIT_BYTES)})
    create_topic(target, flow.twin(topics["compacted"]), 1, {"cleanup.policy": "compact"})
    for name, case in CASES.items():
        create_topic(source, topics[name], 1, case.settings)
        case.write(source, topics[name])
    return Copied(flow, topics, flow.mirror(), flow.mirror())


@pytest.mark.parametrize("name", CASES)
def test_readers_of_the_twin_see_what_readers_of_the_source_saw(copied: Copied, name: str) -> None:
    topic = copied.topics[name]
    source, target = copied.flow.read_source(topic), copied.flow.read_target(topic)
    assert _without_stamp_type(target[0]) == _without_stamp_type(source[0])
    assert bool(source[0]) == (name not in ("only aborted", "empty"))


def test_nothing_is_found_wrong_and_nothing_is_left(copied: Copied) -> None:
    assert copied.result.failures == []
    assert copied.again.failures == []
    assert copied.again.recorded.records == 0
    gaps = copied.result.recorded.gaps
    assert set(gaps) == {"aborted", "control", "compacted"}


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_go_as_they_are(copied: Copied, codec: str) -> None:
    topic = copied.topics[f"compressed {codec}"]
    source, target = source_batches(copied.flow, topic), target_batches(copied.flow, topic)
    kept = [(header.codec, header.record_count, header.size_bytes, header.max_timestamp_ms) for header in source]
    assert [(one.codec, one.record_count, one.size_bytes, one.max_timestamp_ms) for one in target] == kept


def test_the_unusual_was_there_to_be_copied(copied: Copied) -> None:
    headers = {name: source_batches(copied.flow, copied.topics[name]) for name in CASES}
    assert any(header.has_holes for header in headers["compacted"])
    assert any(header.has_delete_horizon for header in headers["compacted"])
    assert all(header.is_log_append_time for header in headers["log append time"])
    assert headers["straddling"][0].base_offset == 0
    assert max(header.size_bytes for header in headers["split"]) > SPLIT_BYTES
    assert len(headers["many small batches"]) == 400
    assert len(target_batches(copied.flow, copied.topics["split"])) > len(headers["split"])


@pytest.mark.parametrize("scope", [FULL, DEEP], ids=["by digest", "record by record"])
def test_reconciliation_finds_them_equal(copied: Copied, scope: Scope) -> None:
    result = reconcile(copied.flow, scope)
    assert result.differences == (), "\n".join(map(str, result.differences))
    assert result.records == copied.result.recorded.records
    assert result.tally[Kind.EQUAL] + result.tally.get(Kind.COMPACTED, 0) == result.records
    assert result.gaps == copied.result.recorded.gaps
    if scope is FULL:
        assert result.opened < result.records, "most batches are compared unopened"


def _without_stamp_type(records: list[Seen]) -> list[tuple[object, ...]]:
    """A LogAppendTime stamp is a CreateTime one on the twin: the same milliseconds."""
    return [(record.key, record.value, record.headers, record.timestamp[1]) for record in records]
