"""Comparing two sequences of records: by examples, and against brute force on small ones."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from hypothesis import example, given
from hypothesis import strategies as st

from twinlog.model.reconciliation import ALLOWED, Difference, Kind, joined
from twinlog.model.record_comparison import Compared, Judged, MappedSpan, RecordFact, compare

SOURCE, TARGET = 10, 40
"""Where the records of the examples begin on either side."""

Short = list[tuple[Kind, str | None, str | None]]


def record(offset: int, name: str, timestamp_ms: int = -1) -> RecordFact:
    """A record with a key and a value of one letter each: `a` is key a with value a, `aB` is key a with value B."""
    return RecordFact(offset, timestamp_ms, name[0].encode(), name[-1].encode(), b"")


def log(start: int, names: str) -> list[RecordFact]:
    """Names in a row, each at the next offset; a dot is an offset without a record."""
    return [record(start + place, name) for place, name in enumerate(names.split()) if name != "."]


def judged(source: str, target: str, spans: list[MappedSpan] | None = None) -> Short:
    whole = [MappedSpan(SOURCE, TARGET, len(source.split()))]
    found = compare(log(SOURCE, source), log(TARGET, target), whole if spans is None else spans)
    return [(one.kind, place(one.source, SOURCE), place(one.target, TARGET)) for one in found.judged]


def place(fact: RecordFact | None, start: int) -> str | None:
    return None if fact is None else str(fact.offset - start)


def test_equal_records_are_only_counted() -> None:
    found = compare(log(SOURCE, "a b c"), log(TARGET, "a b c"), [MappedSpan(SOURCE, TARGET, 3)])
    assert found == Compared(equal=3)


def test_a_dropped_record_is_missing_and_the_rest_is_misplaced() -> None:
    assert judged("a b c d", "a c d") == [
        (Kind.MISSING, "1", None),
        (Kind.MISPLACED, "2", "1"),
        (Kind.MISPLACED, "3", "2"),
    ]


def test_a_hole_is_missing_and_nothing_else() -> None:
    assert judged("a b c", "a . c") == [(Kind.MISSING, "1", None)]


def test_a_doubled_record_is_told_with_its_original() -> None:
    assert judged("a b", "a b a") == [(Kind.DOUBLED, "0", "2")]


def test_what_was_altered_is_named() -> None:
    facts = log(SOURCE, "a b c")
    changed = [
        facts[0]._replace(key=b"x"),
        facts[1]._replace(value=b"x", headers=b"x"),
        facts[2]._replace(timestamp_ms=5),
    ]
    target = [fact._replace(offset=TARGET + number) for number, fact in enumerate(changed)]
    found = compare(facts, target, [MappedSpan(SOURCE, TARGET, 3)])
    assert [(one.kind, one.detail) for one in found.judged] == [
        (Kind.ALTERED, "key"),
        (Kind.ALTERED, "value, headers"),
        (Kind.ALTERED, "timestamp"),
    ]


def test_an_altered_record_is_known_again_where_others_have_moved() -> None:
    assert judged("a b c d", "b cX d") == [
        (Kind.MISSING, "0", None),
        (Kind.MISPLACED, "1", "0"),
        (Kind.ALTERED, "2", "1"),
        (Kind.MISPLACED, "3", "2"),
    ]


def test_a_record_with_nothing_in_common_is_another_one() -> None:
    assert judged("a b c", "a X c") == [(Kind.MISSING, "1", None), (Kind.EXTRA, None, "1")]


def test_the_fewest_are_out_of_order() -> None:
    assert judged("a b c d", "d a b c") == [
        (Kind.MISPLACED, "0", "1"),
        (Kind.MISPLACED, "1", "2"),
        (Kind.MISPLACED, "2", "3"),
        (Kind.OUT_OF_ORDER, "3", "0"),
    ]


def test_what_lies_outside_the_ledgers_spans_is_foreign() -> None:
    spans = [MappedSpan(SOURCE, TARGET, 2), MappedSpan(SOURCE + 2, TARGET + 4, 1)]
    assert judged("a b c", "a b X . c Y", spans) == [(Kind.FOREIGN, None, "2"), (Kind.FOREIGN, None, "5")]


def test_a_source_record_without_a_row_is_missing() -> None:
    found = compare(log(SOURCE, "a b"), log(TARGET, "a"), [MappedSpan(SOURCE, TARGET, 1)])
    assert [(one.kind, one.detail) for one in found.judged] == [(Kind.MISSING, "the ledger has no row for it")]


def test_what_neither_side_has_is_told_by_its_offsets() -> None:
    found = compare(log(SOURCE, "a . . d . f"), log(TARGET, "a . . d . f"), [MappedSpan(SOURCE, TARGET, 6)])
    assert found.gone == [MappedSpan(SOURCE + 1, TARGET + 1, 2), MappedSpan(SOURCE + 4, TARGET + 4, 1)]


def test_neighbouring_differences_are_told_together() -> None:
    one = Difference(Kind.MISSING, "t", 0, 5, 9)
    apart = Difference(Kind.MISSING, "t", 0, 8, 12)
    foreign = [Difference(Kind.FOREIGN, "t", 0, None, offset) for offset in (20, 21)]
    found = [one, Difference(Kind.MISSING, "t", 0, 6, 10), apart, *foreign]
    assert [(each.source_offset, each.target_offset, each.count) for each in joined(found)] == [
        (5, 9, 2),
        (8, 12, 1),
        (None, 20, 2),
    ]


names = st.text("abcdef", max_size=7)


@given(names, names, st.integers(0, 7))
@example("abc", "cab", 3)
@example("aab", "aba", 3)
def test_every_record_gets_one_verdict(source: str, target: str, mapped: int) -> None:
    here = [record(SOURCE + number, name) for number, name in enumerate(source)]
    there = [record(TARGET + number, name) for number, name in enumerate(target)]
    found = compare(here, there, [MappedSpan(SOURCE, TARGET, mapped)])
    held = sum(1 for a, b in zip(source[:mapped], target, strict=False) if a == b)
    assert found.equal == held
    on_source = [one for one in found.judged if one.source is not None and one.kind is not Kind.DOUBLED]
    on_target = [one for one in found.judged if one.target is not None]
    assert sorted(offsets(on_source)) == [
        fact.offset for number, fact in enumerate(here) if not is_held(source, target, mapped, number)
    ]
    assert sorted(one.target.offset for one in on_target if one.target) == [
        fact.offset for number, fact in enumerate(there) if not is_held(source, target, mapped, number)
    ]
    assert all(one.kind not in ALLOWED for one in found.judged)
    # By values alone, without any order: what one side has too many of.
    kinds = Counter(one.kind for one in found.judged)
    here_only, there_only = Counter(source) - Counter(target), Counter(target) - Counter(source)
    assert kinds[Kind.MISSING] + kinds[Kind.ALTERED] == here_only.total()
    assert kinds[Kind.DOUBLED] + kinds[Kind.EXTRA] + kinds[Kind.FOREIGN] + kinds[Kind.ALTERED] == there_only.total()


def is_held(source: str, target: str, mapped: int, number: int) -> bool:
    return number < mapped and number < len(source) and number < len(target) and source[number] == target[number]


def offsets(found: list[Judged]) -> list[int]:
    return [one.source.offset for one in found if one.source is not None]


@given(
    st.permutations("abcdef").map("".join), st.permutations("abcdef").map("".join), st.integers(0, 6), st.integers(0, 6)
)
def test_as_many_as_can_be_kept_their_order(source: str, target: str, here: int, there: int) -> None:
    source, target = source[:here], target[:there]
    found = compare(
        [record(SOURCE + number, name) for number, name in enumerate(source)],
        [record(TARGET + number, name) for number, name in enumerate(target)],
        [MappedSpan(SOURCE, TARGET, len(source))],
    )
    out_of_order = sum(1 for one in found.judged if one.kind is Kind.OUT_OF_ORDER)
    common = [name for name in source if name in target]
    held = [name for number, name in enumerate(source) if target[number : number + 1] == name]
    # Every subset that rises on both sides and holds all that stayed in place, tried one by one.
    best = max(
        len(chosen)
        for size in range(len(held), len(common) + 1)
        for chosen in combinations(common, size)
        if set(held) <= set(chosen) and list(chosen) == sorted(chosen, key=target.index)
    )
    assert out_of_order == len(common) - best
