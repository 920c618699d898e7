"""A flow for one test's topics and groups only; the clusters are every test's."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from local.kafka import KafkaClusters
from support.mirroring import Twins, twins


@pytest.fixture
def mark() -> str:
    return uuid.uuid4().hex[:8]


@pytest.fixture
def topic(mark: str) -> str:
    return f"orders-{mark}"


@pytest.fixture
def group(mark: str) -> str:
    return f"readers-{mark}"


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, mark: str) -> Twins:
    source, target = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    return twins(
        source,
        target,
        tmp_path,
        (f".*-{mark}",),
        groups=(f".*-{mark}",),
        checkpoints_topic_replication_factor=1,
        transaction_bytes=20_000,
    )
