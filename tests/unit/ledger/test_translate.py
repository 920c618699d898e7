from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.histories import History, history, rows, some_id
from twinlog.ledger.answers import Answer, How, NoAnswer, Twin
from twinlog.ledger.translate import Translator
from twinlog.model.offsets import JournalEntry, PartitionPair, Segment, TopicPartition

SEEDS = st.integers(0, 2**32)


def estate(random: Random) -> tuple[list[History], pa.Table, list[Twin]]:
    """Several topics and partitions, some topics made anew on one side or both, rows in no order."""
    current: list[History] = []
    entries: list[JournalEntry] = []
    for number in range(random.randrange(1, 4)):
        name, source_id, target_id = f"t{number}", some_id(random), some_id(random)
        old_ids = random.choice(
            [None, (some_id(random), target_id), (source_id, some_id(random)), (some_id(random), some_id(random))]
        )
        for partition in random.sample(range(5), random.randrange(1, 4)):
            current.append(history(random, PartitionPair(name, source_id, f"nyc.{name}", target_id, partition)))
            entries += current[-1].entries
            if old_ids:
                entries += history(
                    random, PartitionPair(name, old_ids[0], f"nyc.{name}", old_ids[1], partition)
                ).entries
    random.shuffle(entries)
    twins = [Twin(past.pair, past.position, past.target_start, past.target_end) for past in current]
    return current, rows(entries), twins


def expected_forward(past: History, offset: int) -> int | None:
    if offset > past.position:
        return None
    following = [target for source, target in past.copied.items() if source >= offset]
    if following:
        return min(following)
    return past.target_start if past.last_copied is None else past.last_copied + 1


def expected_reverse(past: History, offset: int) -> int | None:
    if offset > past.target_end:
        return None
    return min((source for source, target in past.copied.items() if target >= offset), default=past.position)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_every_offset_forward_and_reverse_equals_brute_force(seed: int) -> None:
    pasts, table, twins = estate(Random(seed))
    translator = Translator(table, twins)
    for reverse in (False, True):
        asked = [
            (past, offset) for past in pasts for offset in range((past.target_end if reverse else past.position) + 2)
        ]
        answers = translator.table(
            pa.table(
                {
                    "topic": [(p.pair.target_topic if reverse else p.pair.source_topic) for p, _ in asked],
                    "partition": [past.pair.partition for past, _ in asked],
                    "offset": [offset for _, offset in asked],
                }
            ),
            reverse=reverse,
        )
        expect = expected_reverse if reverse else expected_forward
        assert answers["to_offset"].to_pylist() == [expect(past, offset) for past, offset in asked]
        own = [offset in (past.copied.values() if reverse else past.copied) for past, offset in asked]
        assert [how == How.COPIED for how in answers["how"].to_pylist()] == own
        answered = [offset is not None for offset in answers["to_offset"].to_pylist()]
        assert [how is not None for how in answers["how"].to_pylist()] == answered
        assert [reason is None for reason in answers["reason"].to_pylist()] == answered


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_what_is_read_again_from_the_answer_is_what_was_left_to_read(seed: int) -> None:
    pasts, table, twins = estate(Random(seed))
    translator = Translator(table, twins)
    for past in pasts:
        for offset in range(past.position + 1):
            answer = translator.forward(past.pair.source, offset)
            assert answer.offset is not None
            left = {target for source, target in past.copied.items() if source >= offset}
            assert {target for target in past.copied.values() if target >= answer.offset} == left


@pytest.fixture
def pair() -> PartitionPair:
    random = Random(7)
    return PartitionPair("orders", some_id(random), "nyc.orders", some_id(random), 3)


def segment(pair: PartitionPair, source: int, target: int, count: int) -> JournalEntry:
    return JournalEntry("nyc->lon", "r", 1, Segment(pair, source, target, count, 1, 1, 1, 1))


def forward(translator: Translator, pair: PartitionPair, offset: int) -> Answer:
    return translator.forward(pair.source, offset)


def test_how_each_answer_was_found(pair: PartitionPair) -> None:
    table = rows([segment(pair, 10, 40, 3), segment(pair, 14, 44, 2)])
    translator = Translator(table, [Twin(pair, 16, 0, 47)])
    found = {offset: forward(translator, pair, offset) for offset in (3, 11, 13, 16)}
    assert {offset: (answer.offset, answer.how) for offset, answer in found.items()} == {
        3: (40, How.NEXT),
        11: (41, How.COPIED),
        13: (44, How.NEXT),
        16: (46, How.END),
    }
    assert found[11].message == "orders-3 at 11 is nyc.orders-3 at 41 (copied)"
    assert found[11].given == TopicPartition("nyc.orders", 3)


def test_past_the_position_it_says_how_far_behind_the_mirror_is(pair: PartitionPair) -> None:
    answer = forward(Translator(rows([segment(pair, 10, 40, 3)]), [Twin(pair, 13, 0, 44)]), pair, 20)
    assert (answer.offset, answer.reason, answer.behind) == (None, NoAnswer.BEHIND, 7)
    assert answer.message == "orders-3 at 20 has no answer yet: the mirror is 7 records behind it"


def test_mirrored_partition_with_nothing_in_it_answers_the_targets_log_start(pair: PartitionPair) -> None:
    translator = Translator(rows([]), [Twin(pair, 5, 2, 2)])
    assert [forward(translator, pair, offset).offset for offset in (0, 5, 6)] == [2, 2, None]
    assert forward(translator, pair, 5).how is How.EMPTY
    assert translator.reverse(pair.target, 2).offset == 5


def test_before_anything_is_mirrored_there_is_no_answer(pair: PartitionPair) -> None:
    translator = Translator(rows([]), [Twin(pair, None, 0, 0)])
    assert forward(translator, pair, 0).reason is NoAnswer.NOT_MIRRORED
    stranger = translator.forward(TopicPartition("unheard", 0), 0)
    assert (stranger.reason, stranger.given) == (NoAnswer.NOT_MIRRORED, None)
    assert Translator(rows([]), []).forward(pair.source, 0).reason is NoAnswer.NOT_MIRRORED


@pytest.mark.parametrize("side", ["source_topic_id", "target_topic_id"])
def test_rows_of_an_earlier_topic_do_not_answer(pair: PartitionPair, side: str) -> None:
    ids = {"source_topic_id": pair.source_topic_id, "target_topic_id": pair.target_topic_id}
    ids[side] = some_id(Random(1))
    now = PartitionPair(pair.source_topic, ids["source_topic_id"], pair.target_topic, ids["target_topic_id"], 3)
    table = rows([segment(pair, 0, 0, 9)])
    answer = forward(Translator(table, [Twin(now, None, 0, 0)]), now, 4)
    assert (answer.offset, answer.reason) == (None, NoAnswer.RECREATED)
    assert forward(Translator(table, [Twin(now, 0, 0, 0)]), now, 0).how is How.EMPTY


def test_a_ledger_that_ends_before_the_position_is_not_believed_past_its_end(pair: PartitionPair) -> None:
    translator = Translator(rows([segment(pair, 0, 0, 5)]), [Twin(pair, 9, 0, 11)])
    assert forward(translator, pair, 4).offset == 4
    for offset in (5, 9):
        answer = forward(translator, pair, offset)
        assert (answer.reason, answer.behind) == (NoAnswer.NOT_RECORDED, 4)
    assert translator.reverse(pair.target, 5).reason is NoAnswer.NOT_RECORDED


def test_a_record_that_the_target_has_removed_is_answered_with_its_log_start(pair: PartitionPair) -> None:
    translator = Translator(rows([segment(pair, 0, 0, 5), segment(pair, 5, 6, 5)]), [Twin(pair, 10, 8, 12)])
    answer = forward(translator, pair, 2)
    assert (answer.offset, answer.how) == (8, How.EXPIRED)
    assert forward(translator, pair, 8).how is How.COPIED


def test_reverse_past_the_targets_end_has_no_answer(pair: PartitionPair) -> None:
    translator = Translator(rows([segment(pair, 0, 0, 5)]), [Twin(pair, 5, 0, 6)])
    assert translator.reverse(pair.target, 6).offset == 5
    answer = translator.reverse(pair.target, 8)
    assert (answer.reason, answer.behind) == (NoAnswer.PAST_END, 2)


def test_a_table_keeps_its_other_columns_and_order(pair: PartitionPair) -> None:
    translator = Translator(rows([segment(pair, 0, 0, 5)]), [Twin(pair, 5, 0, 6)])
    asked = pa.table(
        {
            "group": ["b", "a"],
            "topic": ["orders", "other"],
            "partition": pa.array([3, 3], pa.int32()),
            "offset": [2, 1],
        }
    )
    answers = translator.table(asked).to_pylist()
    assert [(row["group"], row["to_topic"], row["to_offset"]) for row in answers] == [
        ("b", "nyc.orders", 2),
        ("a", None, None),
    ]


def test_a_negative_offset_is_refused(pair: PartitionPair) -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        forward(Translator(rows([]), []), pair, -1)
