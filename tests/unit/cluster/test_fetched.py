from __future__ import annotations

from types import SimpleNamespace

import pytest

from support.record_bytes import SOURCE, Row, make_batch
from twinlog.cluster.fetched import select_from
from twinlog.errors import BatchTooLargeError, CorruptBatchError
from twinlog.wire.selection import Selection

BATCHES = 9


def selected(batches: list[bytes], start: int = 0, max_batch_bytes: int = 1_000) -> Selection:
    answer = SimpleNamespace(records=b"".join(batches), aborted_transactions=None, last_stable_offset=1_000)
    return select_from(answer, SOURCE, start, 1_000, max_batch_bytes)


def batches(start: int = 0) -> list[bytes]:
    return [make_batch([Row(), Row()], 2 * number) for number in range(start, BATCHES)]


def test_a_sound_answer_is_taken_whole() -> None:
    assert selected(batches()).end == 2 * BATCHES


@pytest.mark.parametrize("bad", range(1, BATCHES))
def test_what_lies_before_a_record_that_is_too_large_is_taken(bad: int) -> None:
    data = batches()
    data[bad] = make_batch([Row(), Row(value=b"x" * 2_000)], 2 * bad)
    selection = selected(data)
    assert (selection.end, len(selection.batches)) == (2 * bad, bad)
    with pytest.raises(BatchTooLargeError, match=f"offset {2 * bad + 1}"):
        selected(data[bad:], start=2 * bad)


@pytest.mark.parametrize("bad", range(1, BATCHES))
def test_what_lies_before_damage_is_taken(bad: int) -> None:
    data = batches()
    data[bad] = data[bad][:-1] + b"?"
    assert selected(data).end == 2 * bad
    with pytest.raises(CorruptBatchError):
        selected(data[bad:], start=2 * bad)


def test_each_batch_keeps_the_epoch_it_was_written_in() -> None:
    selection = selected(batches())
    assert selection.epochs == (7,) * BATCHES
    assert selection.last_epoch == 7
