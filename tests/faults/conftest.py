"""A flow with something to copy, for faults that need no cluster of their own."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from local.kafka import KafkaClusters
from support.feeding import Feeder
from support.ledger_check import await_settled
from support.mirroring import Twins, twins

PARTITIONS = 9
RECORDS = 600
TRANSACTION_BYTES = 4_000
"""So small that the records make several transactions of each lane."""


@pytest.fixture
def topic() -> str:
    return f"faults-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def feeder(kafka_pair: KafkaClusters, topic: str) -> Feeder:
    return Feeder(kafka_pair["nyc"].bootstrap_servers, topic, PARTITIONS)


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str, feeder: Feeder) -> Twins:
    """Never run before."""
    source, target = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    flow = twins(source, target, tmp_path, (topic,), transaction_bytes=TRANSACTION_BYTES)
    flow.create(topic, PARTITIONS)
    feeder.feed(1, RECORDS)
    await_settled(source, topic)
    return flow
