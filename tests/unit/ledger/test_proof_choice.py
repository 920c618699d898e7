"""Which rows are proven in a run: what is new, what is overdue, and a share of the rest, the oldest first."""

from __future__ import annotations

from random import Random
from uuid import UUID

import numpy as np

from support.histories import history, rows, some_id
from twinlog.ledger.proof_choice import Choice, chosen, cut, runs_of
from twinlog.ledger.proof_rows import PairRows, account_of, by_target, unaccounted
from twinlog.ledger.proof_state import Stretch, replaced
from twinlog.model.offsets import PartitionPair, Span

PAIR = PartitionPair("orders", UUID(int=1), "nyc.orders", UUID(int=2), 0)
DAY = 1_000


def pair_rows(count: int, size: int = 10) -> PairRows:
    """Rows of ten offsets each, without gaps."""
    starts = np.arange(count, dtype=np.int64) * 10
    zeros = np.zeros(count, dtype=np.int64)
    return PairRows(
        PAIR,
        starts,
        starts,
        zeros + 10,
        zeros,
        zeros,
        zeros + size,
        zeros,
        np.arange(count, dtype=np.int64),
        np.asarray(["0" * 16] * count, dtype=object),
    )


def stretch(start: int, end: int, at_ms: int) -> Stretch:
    return Stretch(str(UUID(int=1)), str(UUID(int=2)), 0, start, end, end, at_ms)


def picked(table: PairRows, known: list[Stretch], choice: Choice) -> list[int]:
    (found,) = chosen([table], [np.ones(len(table), dtype=bool)], known, choice)
    return np.flatnonzero(found).tolist()


def test_what_is_new_is_chosen() -> None:
    assert picked(pair_rows(5), [], Choice()) == [0, 1, 2, 3, 4]
    assert picked(pair_rows(5), [stretch(0, 30, 5)], Choice()) == [3, 4]


def test_a_row_that_is_not_covered_whole_is_new() -> None:
    assert picked(pair_rows(3), [stretch(0, 15, 5)], Choice()) == [1, 2]


def test_of_the_rest_a_share_is_chosen_the_oldest_first() -> None:
    known = [stretch(0, 20, 7), stretch(20, 40, 5), stretch(40, 50, 9)]
    assert picked(pair_rows(5), known, Choice(again_share=0.4)) == [2, 3]
    assert picked(pair_rows(5), known, Choice(again_share=0.7)) == [0, 2, 3]
    assert picked(pair_rows(5), known, Choice(again_share=0.1)) == []
    assert picked(pair_rows(5), known, Choice(again_share=9.0)) == [0, 1, 2, 3, 4]


def test_what_is_overdue_is_chosen_whatever_the_share() -> None:
    assert picked(pair_rows(3), [stretch(0, 20, 5), stretch(20, 30, 8)], Choice(overdue_before_ms=5)) == [0, 1]


def test_a_window_and_everything() -> None:
    assert picked(pair_rows(4), [stretch(0, 40, 5)], Choice(since_ms=2)) == [2, 3]
    assert picked(pair_rows(4), [stretch(0, 40, 5)], Choice(full=True)) == [0, 1, 2, 3]


def test_in_shares_everything_is_proven_again_within_the_days() -> None:
    table, known = pair_rows(50), (stretch(0, 500, 1),)
    random = Random(3)
    now = 1
    proven_at = dict.fromkeys(range(50), now)
    while now < 20 * DAY:
        last, now = now, now + random.choice((7, 30, 90, 400))
        choice = Choice(again_share=(now - last) / DAY, overdue_before_ms=now - DAY)
        again = picked(table, list(known), choice)
        known = replaced(known, [stretch(10 * row, 10 * row + 10, now) for row in again])
        proven_at |= dict.fromkeys(again, now)
        assert now - min(proven_at.values()) <= DAY, "the run that finds it overdue proves it"
        assert len(known) <= 100, "what was proven long ago is forgotten"


def test_stretches_are_cut_by_what_covers_them() -> None:
    known = replaced([stretch(0, 100, 1)], [stretch(20, 30, 2), stretch(50, 60, 2)])
    assert sorted((one.source_start, one.source_end, one.proven_at_ms) for one in known) == [
        (0, 20, 1),
        (20, 30, 2),
        (30, 50, 1),
        (50, 60, 2),
        (60, 100, 1),
    ]


def test_blocks_are_neighbours_of_bounded_size() -> None:
    assert list(runs_of(np.asarray([True, True, False, True]))) == [(0, 2), (3, 4)]
    large = pair_rows(5, size=30 * 1024 * 1024)
    assert list(cut(large, 0, 5)) == [(0, 2), (2, 4), (4, 5)]


def test_every_history_is_accounted_for_up_to_its_position() -> None:
    random = Random(5)
    for _ in range(50):
        pair = PartitionPair("orders", some_id(random), "nyc.orders", some_id(random), 3)
        past = history(random, pair)
        if not past.entries:
            continue
        ((one,),) = by_target(rows(past.entries)).values()
        assert list(unaccounted(one, 0, past.position)) == []
        account = account_of([one], [0], [past.position])
        assert (account.records, account.holes, account.adds_up) == (len(past.copied), 0, True)
        beyond = list(unaccounted(one, 0, past.position + 4))
        assert [hole.source for hole in beyond] == [Span(past.position, past.position + 4)]


def test_a_row_that_is_lost_is_a_hole_and_one_too_many_an_overlap() -> None:
    random = Random(6)
    found = 0
    for _ in range(50):
        pair = PartitionPair("orders", some_id(random), "nyc.orders", some_id(random), 3)
        past = history(random, pair)
        if len(past.entries) < 3:
            continue
        found += 1
        lost = past.entries[random.randrange(1, len(past.entries) - 1)].segment
        rest = [entry for entry in past.entries if entry.segment is not lost]
        ((one,),) = by_target(rows(rest)).values()
        (hole,) = unaccounted(one, 0, past.position)
        for start in (0, lost.source_end):
            account = account_of([one], [start], [past.position])
            assert account.adds_up
            assert account.holes == (0 if start else lost.source_end - lost.span_start)
        assert (hole.source, hole.twice) == (Span(lost.span_start, lost.source_end), False)
        assert list(unaccounted(one, lost.source_end, past.position)) == [], "below the log start rows may be missing"
        ((one,),) = by_target(rows([*past.entries, past.entries[-1]])).values()
        assert any(hole.twice for hole in unaccounted(one, 0, past.position))
        account = account_of([one], [0], [past.position])
        assert (account.adds_up, account.twice > 0) == (True, True)
    assert found > 10
