"""A flow of new aliases between the two clusters, for topics of a new name."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from local.kafka import KafkaClusters
from support.mirroring import Twins, twins


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    source, target = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    return twins(source, target, tmp_path, (f"{topic}.*",))
