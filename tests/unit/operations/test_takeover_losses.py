from __future__ import annotations

import time
from uuid import UUID

import pytest

from twinlog.model.flow import Flow
from twinlog.model.offsets import TopicPartition
from twinlog.model.positions import Position
from twinlog.model.takeover import TopicLoss
from twinlog.operations.lag import UNKNOWN, PartitionLag
from twinlog.operations.takeover_losses import Missing, missing, said_losses, seen_losses

FLOW = Flow("nyc", "lon", topics=(".*",))
ID = UUID(int=1)


def source(topic: str, partition: int = 0) -> TopicPartition:
    return TopicPartition(topic, partition)


def twin(topic: str, partition: int = 0) -> TopicPartition:
    return TopicPartition(f"nyc.{topic}", partition)


def position(offset: int, target_end: int, seen_end: int) -> Position:
    return Position(offset, ID, ID, 0, target_end, seen_end)


def test_what_was_seen_and_not_copied_is_missing_and_signs_of_life_are_not() -> None:
    positions = {
        twin("orders"): position(10, 8, 12),
        twin("orders", 1): position(10, 8, 10),
        twin("payments"): position(5, 5, 5),
        twin("heartbeats"): position(1, 1, 9),
    }
    found = missing(FLOW, positions, {source("payments"): 6, source("orders"): 11})
    assert found == {
        source("orders"): Missing(twin("orders"), 2, 7),
        source("payments"): Missing(twin("payments"), 1, 4),
    }


def test_seconds_are_the_most_that_they_can_be() -> None:
    """A heartbeat that has just come says nothing of a topic that the mirror was hours behind with."""
    missed = {source("orders"): Missing(twin("orders"), 2, 7), source("new"): Missing(twin("new"), 3, -1)}
    hour_ago = int(time.time() * 1000) - 3_600_000
    found = seen_losses(FLOW, missed, {twin("orders"): hour_ago}, 2.5)

    assert found.records == 5
    assert found.seconds == pytest.approx(3_600, abs=60)
    assert [(loss.topic, loss.records, loss.seconds is None) for loss in found.topics] == [
        ("new", 3, True),
        ("orders", 2, False),
    ]
    assert "since when new waits is not known" in found.note


def test_without_anything_missing_the_heartbeat_is_the_measure() -> None:
    found = seen_losses(FLOW, {}, {}, 2.5)
    assert (found.topics, found.records, found.seconds) == ((), 0, 2.5)
    nothing = seen_losses(FLOW, {}, {}, None)
    assert (nothing.records, nothing.seconds) == (0, None)


def test_what_the_source_says_holds_and_what_it_can_t_say_is_not_nothing() -> None:
    lags = {source("orders"): PartitionLag(2, 4.0), source("orders", 1): PartitionLag(1, 9.0)}
    found = said_losses(FLOW, {**lags, source("idle"): PartitionLag()})
    assert found.topics == (TopicLoss("orders", "nyc.orders", 3, 9.0),)
    assert (found.records, found.seconds) == (3, 9.0)
    half = said_losses(FLOW, {**lags, source("dark"): UNKNOWN})
    assert (half.records, half.seconds) == (None, None)
    assert "it can't say of dark" in half.note
