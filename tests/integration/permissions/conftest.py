"""A flow between the guarded clusters, as the brokers' own user, who is allowed everything, and a hand on each side."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from local.kafka import KafkaClusters
from support.mirroring import Twins, twins
from support.syncing import Hand


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flow(guarded: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    return twins(guarded["nyc"].bootstrap_servers, guarded["lon"].bootstrap_servers, tmp_path, (f"{topic}.*",))


@pytest.fixture
def nyc(flow: Twins, topic: str) -> Hand:
    hand = Hand(flow.source_servers)
    hand.create(topic)
    return hand


@pytest.fixture
def lon(flow: Twins) -> Hand:
    return Hand(flow.target_servers)
