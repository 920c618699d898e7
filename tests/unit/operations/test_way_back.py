from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from twinlog.cluster.refusals import DENIED, Refusal
from twinlog.cluster.topic_settings import SettingsRead
from twinlog.ledger.returned import TargetPartition
from twinlog.model.findings import FindingKind
from twinlog.model.offsets import PartitionPair, Span, TopicPartition
from twinlog.model.plan import Partitions
from twinlog.model.positions import NO_LEADER_EPOCH, Position
from twinlog.model.topology import Flow
from twinlog.model.twin_settings import TopicSettings
from twinlog.operations.way_back import WayBack, not_converging, to_be_passed

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


def test_a_topic_of_which_nothing_is_known_is_left_out_and_the_others_stay_within_what_is_proven() -> None:
    other = replace(PAIR, source_topic="payments", target_topic="payments")
    found = Partitions([PAIR, other], [None, POSITION], [1, 2], [50, 60], [3, 4], [1.0, 2.0])
    came = [Span(41, 45)]
    back = WayBack({other.source: came}, {other.source: 55}, {"orders": "why"})

    assert back.bounded(found) == Partitions([other], [POSITION], [2], [55], [4], [2.0], [came])
    (finding,) = back.findings
    assert (finding.kind, finding.partition) == (FindingKind.NOT_ALLOWED, TopicPartition("orders", 0))
    assert finding.message == "orders is not copied: why"


@pytest.mark.parametrize(
    ("read", "kind"),
    [
        (SettingsRead({"orders": TopicSettings({}, {"cleanup.policy": "delete"})}, {}), None),
        (SettingsRead({"orders": TopicSettings({}, {"cleanup.policy": "compact,delete"})}, {}), FindingKind.REFUSED),
        (SettingsRead({"orders": TopicSettings({}, {})}, {}), FindingKind.REFUSED),
        (SettingsRead({}, {"orders": DENIED}), FindingKind.NOT_ALLOWED),
        (SettingsRead({}, {"orders": Refusal("UnknownServer", "", not_allowed=False)}), FindingKind.REFUSED),
    ],
    ids=["deleted", "compacted", "not said", "not allowed", "refused"],
)
def test_what_is_mirrored_both_ways_is_copied_only_where_it_is_known_not_to_be_compacted(
    read: SettingsRead, kind: FindingKind | None
) -> None:
    found = not_converging(Flow("nyc", "lon"), "nyc", "User:mirror", read)

    assert [finding.kind for finding in found] == ([] if kind is None else [kind])
    assert all(finding.partition == TopicPartition("orders", 0) for finding in found)


def test_a_policy_that_may_not_be_read_is_told_with_who_lacks_what() -> None:
    (finding,) = not_converging(Flow("nyc", "lon"), "nyc", "User:mirror", SettingsRead({}, {"orders": DENIED}))

    assert finding.message == (
        "cluster nyc: User:mirror is not allowed DESCRIBE_CONFIGS on topic orders, so it is not copied: mirrored both "
        "ways under one name it must not be compacted, and cleanup.policy says it"
    )
