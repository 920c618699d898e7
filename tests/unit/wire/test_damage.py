"""Damaged bytes give an error that names the place, or a right copy of what comes before; never a wrong copy.

The base offset alone has no checksum; what protects it (order, bounds) is tested with the selection.
"""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.record_bytes import Row, emptied_batch, make_batch, marker
from support.selecting import copied, selecting
from twinlog.errors import CorruptBatchError
from twinlog.wire.aborted import AbortedTransaction

_PARTS = (
    make_batch([Row(value=b"plain", headers=(("h", None),)), Row(key=b"k")], 10),
    make_batch([Row(value=b"squeezed" * 50)] * 3, 12, 3),
    make_batch([Row(value=b"aborted")], 15, attributes=0x10, producer_id=7),
    marker(16, 7, commit=False),
    make_batch([Row(value=b"holes" * 50)] * 2, 17, 1, deltas=[0, 3]),
    emptied_batch(21, 2),
    make_batch([Row(value=b"stamped")], 23, attributes=0x08, max_timestamp=99),
    make_batch([Row(value=b"last")] * 2, 24, 4),
)
_DATA = b"".join(_PARTS)
_STARTS = [sum(map(len, _PARTS[:index])) for index in range(len(_PARTS))]
_ABORTED = [AbortedTransaction(7, 15)]
_BOUND = 26


def _copy(data: bytes) -> tuple[int, list[Any]]:
    selection = selecting(data, 10, _ABORTED, bound=_BOUND)
    return selection.end, list(copied(selection))


_END, _RECORDS = _copy(_DATA)


def _assert_error_or_right(damaged: bytes) -> None:
    try:
        end, records = _copy(damaged)
    except CorruptBatchError as caught:
        error: CorruptBatchError | None = caught
    else:
        error = None
        assert end <= _END
        assert records == [record for record in _RECORDS if record[0] < end]
    assert error is None or "cluster nyc, topic orders, partition 3, offset " in str(error)


def _is_base_offset(at: int) -> bool:
    return any(start <= at < start + 8 for start in _STARTS)


def test_undamaged_bytes_are_copied() -> None:
    assert _END == 26
    assert [record[0] for record in _RECORDS] == [10, 11, 12, 13, 14, 17, 20, 23, 24, 25]


@pytest.mark.parametrize("bit", range(8))
def test_every_single_bit_flipped(bit: int) -> None:
    for at in range(len(_DATA)):
        if _is_base_offset(at):
            continue
        damaged = bytearray(_DATA)
        damaged[at] ^= 1 << bit
        _assert_error_or_right(bytes(damaged))


def test_truncated_anywhere() -> None:
    for length in range(len(_DATA)):
        _assert_error_or_right(_DATA[:length])


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(_STARTS), st.integers(-(2**31), 2**31 - 1) | st.integers(0, 400))
def test_lengths_that_lie(start: int, length: int) -> None:
    damaged = bytearray(_DATA)
    struct.pack_into(">i", damaged, start + 8, length)
    _assert_error_or_right(bytes(damaged))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_bytes_overwritten(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(_DATA) - 1).filter(lambda at: not _is_base_offset(at)))
    room = next((start for start in _STARTS if start > at), len(_DATA)) - at
    junk = data.draw(st.binary(min_size=1, max_size=min(room, 40)))
    _assert_error_or_right(_DATA[:at] + junk + _DATA[at + len(junk) :])


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200))
def test_garbage_after_the_last_batch(junk: bytes) -> None:
    _assert_error_or_right(_DATA + junk)
