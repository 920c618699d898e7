"""Every offset of a real flow, from 0 to its end and one beyond, translated and held against what plain readers see."""

from __future__ import annotations

import uuid
from bisect import bisect_left
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from local.kafka import KafkaClusters
from support.mirroring import Twins, create_topic, twins
from support.reading import read_messages
from support.source_logs import COMPACTED, compacted_log, delete_records, fill, interleave
from twinlog.cluster.committed import fetch_positions
from twinlog.ledger.answers import How, NoAnswer, Twin
from twinlog.ledger.translate import COLUMNS, Translator
from twinlog.model.lanes import position_group
from twinlog.model.offsets import PartitionPair
from twinlog.model.offsets import TopicPartition as Partition
from twinlog.operations.mirror import Limits

SMALL_RUN_BYTES = 1_500


class Logs:
    """One topic and its twin, as plain readers see them: the offset of each record by its number in the log."""

    def __init__(self, flow: Twins, topic: str) -> None:
        self.source, self.target = Partition(topic, 0), Partition(flow.twin(topic), 0)
        source = list(read_messages(flow.source_servers, topic))
        target = list(read_messages(flow.target_servers, flow.twin(topic)))
        assert [(one.key(), one.value()) for one in target] == [(one.key(), one.value()) for one in source]
        self.source_offsets = [message.offset() for message in source]
        self.target_offsets = [message.offset() for message in target]
        self.source_end = _offset(flow.source_servers, topic, OffsetSpec.latest())
        self.target_start = _offset(flow.target_servers, flow.twin(topic), OffsetSpec.earliest())
        self.target_end = _offset(flow.target_servers, flow.twin(topic), OffsetSpec.latest())

    def forward(self, offset: int) -> int | None:
        """Brute force: the first record at or after `offset`, found by counting on both sides."""
        place = bisect_left(self.source_offsets, offset)
        if place < len(self.source_offsets):
            return self.target_offsets[place]
        if offset > self.source_end:
            return None
        return self.target_offsets[-1] + 1 if self.target_offsets else self.target_start

    def reverse(self, offset: int) -> int | None:
        place = bisect_left(self.target_offsets, offset)
        if place < len(self.target_offsets):
            return self.source_offsets[place]
        return None if offset > self.target_end else self.source_end


def _offset(servers: str, topic: str, spec: OffsetSpec) -> int:
    admin = AdminClient({"bootstrap.servers": servers})
    answers = admin.list_offsets({TopicPartition(topic, 0): spec}, isolation_level=IsolationLevel.READ_COMMITTED)
    offset: int = next(iter(answers.values())).result().offset
    return offset


@pytest.fixture(scope="module")
def flow(kafka_pair: KafkaClusters, tmp_path_factory: pytest.TempPathFactory) -> Twins:
    mark = uuid.uuid4().hex[:6]
    topics = tuple(f"{name}-{mark}" for name in ("transactions", "compacted", "trimmed", "markers", "empty"))
    folder: Path = tmp_path_factory.mktemp("translation")
    source, target = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    # The twin of the compacted topic keeps its own settings, so that nothing is compacted before it is compared.
    flow = twins(source, target, folder, topics, transaction_bytes=400, sync_topic_configs_enabled=False)
    transactions, compacted, trimmed, markers, _ = topics
    for topic in topics:
        create_topic(source, topic, 1, COMPACTED if topic == compacted else {})
    create_topic(target, flow.twin(compacted), 1, {"cleanup.policy": "compact"})
    interleave(source, transactions)
    compacted_log(source, compacted)
    fill(source, trimmed, range(200), batch_num_messages=9)
    delete_records(source, trimmed, 31)
    fill(source, markers, range(20), batch_num_messages=3)
    _mirror_in_small_runs(flow)
    # A second life: records behind markers, and a range that begins behind an aborted tail.
    interleave(source, markers, rounds=2)
    fill(source, trimmed, [f"late {number}" for number in range(30)], batch_num_messages=4)
    _mirror_in_small_runs(flow)
    return flow


def _mirror_in_small_runs(flow: Twins) -> None:
    for _ in range(60):
        result = flow.mirror(limits=Limits(max_bytes=SMALL_RUN_BYTES))
        assert result.failures == []
        if not result.left_records:
            return
    raise AssertionError("the runs do not come to an end")


@pytest.fixture(scope="module")
def translator(flow: Twins) -> Translator:
    return Translator(flow.ledger.read(COLUMNS), _twins(flow))


def _twins(flow: Twins) -> list[Twin]:
    ends = flow.ends()
    with ends.target.raw() as target, ends.source.raw(beside=target) as source:
        topics = list(flow.flow.topics)
        here = source.run(source.metadata(topics)).topics
        there = target.run(target.metadata([flow.twin(topic) for topic in topics])).topics
        positions = target.run(fetch_positions(target, position_group(flow.flow.name)))
    found = []
    for topic in topics:
        twin = there[flow.twin(topic)]
        assert here[topic].topic_id is not None
        assert twin.topic_id is not None
        pair = PartitionPair(topic, here[topic].topic_id, twin.name, twin.topic_id, 0)
        logs = Logs(flow, topic)
        found.append(Twin(pair, positions[pair.target].offset, logs.target_start, logs.target_end))
    return found


@pytest.mark.parametrize("number", range(5))
def test_every_offset_is_translated_as_brute_force_finds_it(flow: Twins, translator: Translator, number: int) -> None:
    logs = Logs(flow, flow.flow.topics[number])
    forward = {offset: translator.forward(logs.source, offset).offset for offset in range(logs.source_end + 2)}
    reverse = {offset: translator.reverse(logs.target, offset).offset for offset in range(logs.target_end + 2)}

    assert forward == {offset: logs.forward(offset) for offset in forward}
    assert reverse == {offset: logs.reverse(offset) for offset in reverse}


def test_the_logs_were_not_simple(flow: Twins, translator: Translator) -> None:
    logs = {topic.rsplit("-", 1)[0]: Logs(flow, topic) for topic in flow.flow.topics}
    rows = flow.ledger.read(("source_topic", "count"))
    assert rows.num_rows > 50
    assert logs["trimmed"].source_offsets[0] == 31
    assert _holes(logs["compacted"].source_offsets) > 3
    assert _holes(logs["transactions"].source_offsets) > 3
    assert all(_holes(one.target_offsets) > 3 for name, one in logs.items() if name != "empty")
    beyond = translator.forward(logs["trimmed"].source, logs["trimmed"].source_end + 3)
    assert (beyond.reason, beyond.behind) == (NoAnswer.BEHIND, 3)
    assert translator.forward(logs["empty"].source, 0).how is How.EMPTY


def _holes(offsets: list[int]) -> int:
    return sum(after - before > 1 for before, after in pairwise(offsets))
