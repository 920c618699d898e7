from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from twinlog.ledger.returned import TargetPartition
from twinlog.model.offsets import PartitionPair
from twinlog.model.plan import Partitions
from twinlog.model.positions import NO_LEADER_EPOCH, Position
from twinlog.operations.way_back import to_be_passed

SOURCE, TARGET, EARLIER = UUID(int=1), UUID(int=2), UUID(int=3)
PAIR = PartitionPair("orders", SOURCE, "orders", TARGET, 0)
POSITION = Position(40, SOURCE, TARGET, NO_LEADER_EPOCH, 50, seen_end=40)


def asked(position: Position | None, last_stable: int) -> dict[TargetPartition, int]:
    return to_be_passed(Partitions([PAIR], [position], [0], [last_stable], [0], [1.0]))


def test_what_is_asked_for_begins_where_copying_goes_on() -> None:
    assert asked(POSITION, 41) == {TargetPartition(str(SOURCE), 0): 40}


def test_nothing_is_asked_for_where_there_is_nothing_to_copy() -> None:
    assert asked(POSITION, 40) == {}
    assert asked(None, 0) == {}


def test_everything_is_asked_for_where_copying_begins_anew() -> None:
    everything = {TargetPartition(str(SOURCE), 0): 0}
    assert asked(None, 41) == everything
    assert asked(replace(POSITION, source_topic_id=EARLIER), 30) == everything
    assert asked(replace(POSITION, target_topic_id=EARLIER), 30) == everything
