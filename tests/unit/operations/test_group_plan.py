"""What is known of a group where the source is gone, and what a plan says it would lose."""

from __future__ import annotations

from twinlog.model.checkpoints import Reason
from twinlog.model.offsets import TopicPartition
from twinlog.model.topology import Flow
from twinlog.operations.group_plan import planned, with_last_seen
from twinlog.operations.lag import UNKNOWN, PartitionLag
from twinlog.operations.standings import Standing

PLACE = {"group": "billing", "topic": "orders", "target_topic": "nyc.orders", "behind": None, "read_again": 0}
READY = {**PLACE, "partition": 0, "target_offset": 5, "reason": None}
AHEAD = {**PLACE, "partition": 1, "target_offset": None, "reason": str(Reason.AHEAD), "behind": 7}
SHARE = {**PLACE, "topic": None, "partition": None, "target_topic": None, "target_offset": None}
CHECKPOINTED = Standing("billing", TopicPartition("orders", 0), target=TopicPartition("nyc.orders", 0), offset=6)


def test_partitions_that_were_never_checkpointed_are_left_out_with_their_reason() -> None:
    rows = with_last_seen("billing", [CHECKPOINTED], [READY, AHEAD])

    assert rows[0] == CHECKPOINTED
    assert [(row.source, row.reason, row.behind) for row in rows[1:]] == [
        (TopicPartition("orders", 1), Reason.AHEAD, 7)
    ]


def test_a_group_that_was_ready_has_committed() -> None:
    (row,) = with_last_seen("billing", [], [READY])
    assert (row.ready, row.offset, row.target, row.how) == (
        True,
        5,
        TopicPartition("nyc.orders", 0),
        "as the last pass left it",
    )


def test_the_reason_of_a_whole_group_is_known_too() -> None:
    (row,) = with_last_seen("billing", [], [{**SHARE, "reason": str(Reason.SHARE_GROUP)}])
    assert (row.source, row.reason) == (None, Reason.SHARE_GROUP)


def test_a_group_that_nobody_knows_has_no_commit() -> None:
    assert with_last_seen("nobody", [], [READY]) == (Standing("nobody", reason=Reason.NO_COMMIT),)


def test_what_is_lost_is_not_known_where_one_partition_is_not() -> None:
    flow, first, second = Flow("nyc", "lon"), TopicPartition("orders", 0), TopicPartition("orders", 1)

    known = planned(flow, [CHECKPOINTED], [3], {first: PartitionLag(2, 1.5)}, ())
    unknown = planned(flow, [CHECKPOINTED], [3], {first: PartitionLag(2, 1.5), second: UNKNOWN}, ())

    assert (known.lost_records, known.lost_seconds, known.notes) == (2, 1.5, ())
    assert (unknown.lost_records, unknown.lost_seconds) == (None, None)
    assert "orders-1" in unknown.notes[0]
