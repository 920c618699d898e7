from __future__ import annotations

import pytest

from support.record_bytes import SOURCE, Row, make_batch, marker
from support.selecting import selecting
from twinlog.errors import CorruptBatchError
from twinlog.wire.aborted import AbortedTransaction, AbortedTransactions, is_abort_marker
from twinlog.wire.batches import Batch, read_batches


def _data(offset: int, producer_id: int, *, transactional: bool = True) -> bytes:
    return make_batch([Row()], offset, attributes=0x10 if transactional else 0, producer_id=producer_id)


def _batches(data: bytes) -> list[Batch]:
    return [batch for batch in read_batches(memoryview(data), SOURCE, 0) if isinstance(batch, Batch)]


def test_the_drawing_of_the_module() -> None:
    log = _batches(
        _data(10, 7)
        + _data(11, 8)
        + _data(12, 7)
        + _data(13, 8)
        + marker(14, 7, commit=False)
        + _data(15, 7)
        + marker(16, 7, commit=True)
    )
    aborted = AbortedTransactions(SOURCE, [AbortedTransaction(7, 12)])
    assert [aborted.follow(batch) for batch in log] == [False, False, True, False, False, False, False]


def test_two_aborted_transactions_of_one_producer_in_any_order_of_the_list() -> None:
    log = _batches(_data(0, 7) + marker(1, 7, commit=False) + _data(2, 7) + marker(3, 7, commit=False))
    aborted = AbortedTransactions(SOURCE, [AbortedTransaction(7, 2), AbortedTransaction(7, 0)])
    assert [aborted.follow(batch) for batch in log] == [True, False, True, False]


def test_what_is_not_transactional_is_never_aborted() -> None:
    log = _batches(_data(0, 7) + _data(1, 7, transactional=False) + _data(2, -1, transactional=False))
    aborted = AbortedTransactions(SOURCE, [AbortedTransaction(7, 0)])
    assert [aborted.follow(batch) for batch in log] == [True, False, False]


def test_a_marker_emptied_by_compaction_ends_nothing() -> None:
    (batch,) = _batches(make_batch([], 5, span=1, attributes=0x30, producer_id=7))
    assert not is_abort_marker(batch, SOURCE)


def test_a_marker_that_cannot_be_read_is_an_error_that_names_the_place() -> None:
    broken = make_batch([Row(key=b"x")], 5, attributes=0x30, producer_id=7)
    with pytest.raises(CorruptBatchError, match="partition 3, offset 5: a transaction marker"):
        selecting(broken, 5, [AbortedTransaction(7, 0)])
