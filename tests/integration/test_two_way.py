"""One name mirrored both ways, with both sides busy: each ends with the union, every record once."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from local.kafka import KafkaClusters
from support.crashing import ChildRun, Job, Step
from support.mirroring import Twins, create_topic, producer, read_committed, twins
from twinlog.ledger.store import Ledger
from twinlog.operations.mirror import new_run_id

PARTITIONS = 2
ROUNDS = 6


@pytest.fixture
def topic() -> str:
    return f"shared-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def both_ways(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> tuple[Twins, Twins]:
    """The flow there and the flow back, of one topology."""
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    there = twins(nyc, lon, tmp_path, (topic,), naming="identity", transaction_bytes=2_000)
    back_flow = replace(there.flow, source=there.flow.target, target=there.flow.source)
    topology = replace(there.topology, flows={there.flow.name: there.flow, back_flow.name: back_flow})
    back = Twins(topology, back_flow, Ledger(topology.ledger, back_flow.source, back_flow.target), lon, nyc)
    return replace(there, topology=topology), back


def write(servers: str, topic: str, chance: random.Random, mark: str) -> set[bytes]:
    values = [f"{mark} {number}".encode() for number in range(chance.randrange(20, 200))]
    writer = producer(servers)
    for value in values:
        writer.produce(topic, value, b"key", partition=chance.randrange(PARTITIONS))
    writer.flush()
    return set(values)


def values_in(servers: str, topic: str) -> Counter[bytes | None]:
    return Counter(record.value for records in read_committed(servers, topic).values() for record in records)


def test_both_sides_end_with_the_union_also_after_kills(both_ways: tuple[Twins, Twins], topic: str) -> None:
    there, back = both_ways
    chance = random.Random(7)
    create_topic(there.source_servers, topic, PARTITIONS, {})
    create_topic(there.target_servers, topic, PARTITIONS, {})
    written: set[bytes] = set()
    filtered = 0
    for number in range(ROUNDS):
        written |= write(there.source_servers, topic, chance, f"nyc {number}")
        written |= write(there.target_servers, topic, chance, f"lon {number}")
        for flow in chance.sample([there, back], 2):
            run = new_run_id()
            if chance.random() < 0.4:
                step = chance.choice([Step.DURING_PRODUCE, Step.BEFORE_COMMIT, Step.AFTER_COMMIT, Step.BEFORE_LEDGER])
                with ChildRun(Job(flow, run, step)) as child:
                    child.await_killed()
            result = flow.mirror(run=run)
            assert result.failures == []
            filtered += result.recorded.gaps.get("filtered", 0)
    for flow in (there, back, there, back):
        assert flow.mirror().failures == []

    once = Counter(dict.fromkeys(written, 1))
    assert values_in(there.source_servers, topic) == once
    assert values_in(there.target_servers, topic) == once
    assert filtered > 0


def test_a_compacted_topic_is_refused_with_the_reason(both_ways: tuple[Twins, Twins], topic: str) -> None:
    there, _ = both_ways
    create_topic(there.source_servers, topic, PARTITIONS, {"cleanup_policy": "compact"})
    write(there.source_servers, topic, random.Random(1), "nyc")

    result = there.mirror()

    assert result.recorded.records == 0
    (sentence,) = result.failures
    assert sentence.startswith(f"{topic} is compacted and mirrored both ways")
