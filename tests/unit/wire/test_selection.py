from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.modelled_log import Log, logs
from support.record_bytes import Row, emptied_batch, legacy, make_batch, marker
from support.selecting import all_gaps, assert_adds_up, copied, selecting
from twinlog.errors import CorruptBatchError
from twinlog.wire.aborted import AbortedTransaction
from twinlog.wire.outgoing import NO_GAPS, Gaps
from twinlog.wire.verdict import Verdict


@settings(max_examples=150, deadline=None)
@given(logs(), st.data())
def test_any_interleaving_fetched_in_any_pieces_gives_what_a_committed_reader_sees(
    log: Log, data: st.DataObject
) -> None:
    start = position = data.draw(st.integers(0, log.end))
    carried = NO_GAPS
    seen: list[tuple[int, bytes | None]] = []
    gaps: Counter[str] = Counter()
    while position < log.end:
        answer, aborted = log.fetch(position, data.draw(st.integers(1, 4)))
        if not answer:
            break  # the log ends in a hole
        selection = selecting(answer, position, aborted, bound=log.end, carried=carried)
        assert selection.end > position
        assert_adds_up(selection, position, carried)
        seen += [(record[0], record[3]) for record in copied(selection)]
        gaps.update(all_gaps(selection)._asdict())
        gaps.subtract(carried._asdict())
        carried = selection.trailing
        position = selection.end

    kinds = {offset: log.kind(offset) for offset in range(start, position)}
    assert seen == [(offset, b"%d" % offset) for offset, kind in kinds.items() if kind == "record"]
    assert +gaps == Counter(kind for kind in kinds.values() if kind != "record")


def test_the_drawing_of_the_module() -> None:
    data = (
        make_batch([Row()] * 4, 8)
        + marker(12, 1, commit=True)
        + make_batch([Row()] * 2, 13, attributes=0x10, producer_id=2)
        + make_batch([Row()] * 2, 15, deltas=[0, 2])
        + emptied_batch(18, 2)
        + make_batch([Row()] * 3, 22)
    )
    selection = selecting(data, 10, [AbortedTransaction(2, 13)])
    runs = [run for batch in selection.batches for run in batch.runs]
    assert [(run.source_start, run.record_count, run.gaps) for run in runs] == [
        (10, 2, NO_GAPS),
        (15, 1, Gaps(aborted=2, control=1)),
        (17, 1, Gaps(compacted=1)),
        (22, 3, Gaps(compacted=4)),
    ]
    assert (selection.end, selection.trailing) == (25, NO_GAPS)
    assert selection.verdicts == {
        Verdict.STRADDLES: 1,
        Verdict.CONTROL: 1,
        Verdict.ABORTED: 1,
        Verdict.HOLES: 1,
        Verdict.EMPTIED: 1,
        Verdict.WHOLE: 1,
    }
    assert_adds_up(selection, 10)


def test_nothing_but_gaps_is_carried_into_the_next_selection() -> None:
    first = selecting(marker(5, 1, commit=True) + emptied_batch(6, 2), 4)
    assert (first.batches, first.end, first.trailing) == ((), 8, Gaps(control=1, compacted=3))
    second = selecting(make_batch([Row()], 8), 8, carried=first.trailing)
    assert second.batches[0].runs[0].gaps == first.trailing
    assert second.trailing == NO_GAPS


def test_no_bytes_leave_everything_as_it_was() -> None:
    selection = selecting(b"", 9, carried=Gaps(control=2))
    assert (selection.batches, selection.end, selection.trailing) == ((), 9, Gaps(control=2))


@pytest.mark.parametrize(
    ("stop", "end", "offsets"),
    [
        (0, 0, []),
        (1, 2, [0, 1]),
        (2, 2, [0, 1]),
        (3, 4, [0, 1, 2, 3]),
        (4, 4, [0, 1, 2, 3]),
        (6, 6, [0, 1, 2, 3]),
        (9, 10, [0, 1, 2, 3, 8, 9]),
        (99, 10, [0, 1, 2, 3, 8, 9]),
        (None, 10, [0, 1, 2, 3, 8, 9]),
    ],
)
@pytest.mark.parametrize("old", [False, True])
def test_a_stop_rounds_up_to_a_batch_and_may_lie_in_a_hole(
    stop: int | None, end: int, offsets: list[int], old: bool
) -> None:
    if old:  # messages of an old format are batches of one
        data = b"".join(legacy(offset, 1, None, b"v") for offset in (0, 1, 2, 3, 8, 9))
        offsets = [offset for offset in offsets if stop is None or offset < stop]
        end = min(end, 10 if stop is None else stop)
    else:
        data = b"".join(make_batch([Row(), Row()], base) for base in (0, 2, 8))
    selection = selecting(data, 0, stop=stop)
    assert (selection.end, [record[0] for record in copied(selection)]) == (end, offsets)
    assert_adds_up(selection, 0)


@pytest.mark.parametrize(
    ("bases", "start"),
    [
        ((10, 11), 10),  # overlaps
        ((10, 10), 10),  # twice
        ((12, 10), 10),  # back
        ((10,), 12),  # ends before what was asked for
        ((10, 11), 11),  # only the first may straddle
    ],
)
def test_offsets_that_do_not_rise_are_damage(bases: tuple[int, ...], start: int) -> None:
    data = b"".join(make_batch([Row(), Row()], base) for base in bases)
    with pytest.raises(CorruptBatchError, match=r"topic orders, partition 3, offset \d+: a batch claims offsets"):
        selecting(data, start)


@pytest.mark.parametrize("data", [make_batch([Row(), Row()], 10), legacy(10, 1, None, b"") + legacy(11, 1, None, b"")])
def test_offsets_beyond_the_answers_end_are_damage(data: bytes) -> None:
    assert selecting(data, 10, bound=12).end == 12
    with pytest.raises(CorruptBatchError, match=r"partition 3, offset 10: .* the answer ends at 11"):
        selecting(data, 10, bound=11)
