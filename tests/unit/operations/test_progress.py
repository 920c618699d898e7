from __future__ import annotations

import logging
import threading
import time
from uuid import UUID

import pytest

from support.silent import closed_port, silent_server
from support.waiting import await_condition
from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.secrets import ResolvedSettings
from twinlog.model.offsets import PartitionPair, Range
from twinlog.model.plan import PlannedRange
from twinlog.model.positions import Position
from twinlog.operations import progress
from twinlog.operations.progress import Progress, progress_of, watched

SOURCE, TARGET = UUID(int=1), UUID(int=2)


def planned(partition: int, start: int, end: int) -> PlannedRange:
    pair = PartitionPair("t", SOURCE, "nyc.t", TARGET, partition)
    return PlannedRange(pair, Range(pair.source, start, end), 0, lane=0, bytes=10 * (end - start), seen_end=end)


def target(servers: str) -> ClusterAccess:
    return ClusterAccess("lon", ResolvedSettings({"bootstrap.servers": servers}))


def test_what_lies_before_the_positions_is_counted() -> None:
    ranges = [planned(0, 10, 20), planned(1, 0, 30), planned(2, 0, 5), planned(3, 5, 5)]
    of_an_earlier_topic = Position(4, UUID(int=9), TARGET, -1, 0, 4)
    positions = {
        ranges[0].pair.target: Position(14, SOURCE, TARGET, -1, 0, 20),
        # A range's end rounds up to a batch's end.
        ranges[1].pair.target: Position(33, SOURCE, TARGET, -1, 0, 33),
        ranges[2].pair.target: of_an_earlier_topic,
    }
    assert progress_of(ranges, positions, 2.0) == Progress(34, 45, 340, 450, 2.0)


def test_a_look_that_fails_is_not_the_runs_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(progress, "EVERY_S", 0.01)
    caplog.set_level(logging.DEBUG, progress.__name__)
    shown: list[Progress] = []
    with watched("nyc->lon", target(closed_port()), [planned(0, 0, 5)], shown.append):
        await_condition(lambda: caplog.text.count("could not be looked at: cluster lon") > 1, "two looks")

    assert shown == []
    assert "progress" not in {thread.name for thread in threading.enumerate()}


def test_a_look_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LAST_LOOK_WITHIN_S", 0.2)
    monkeypatch.setattr(progress, "EVERY_S", 0.01)
    shown: list[Progress] = []
    with silent_server() as servers:
        began = time.monotonic()
        with watched("nyc->lon", target(servers), [planned(0, 0, 5)], shown.append):
            pass
        assert time.monotonic() - began < 8.0
    assert shown == []
