from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.record_bytes import CODECS, SOURCE, Row, legacy, make_batch, rows
from twinlog.errors import CorruptBatchError
from twinlog.wire.batches import Batch, LegacyMessage, read_batches

_ROWS = [Row(value=b"one"), Row(value=b"two")]


def _read(data: bytes, position: int = 0) -> list[Batch | LegacyMessage]:
    return list(read_batches(memoryview(data), SOURCE, position))


def test_header_fields_are_read_without_opening() -> None:
    rows_ = [Row(timestamp=1000), Row(timestamp=3000), Row(timestamp=2000)]
    data = make_batch(rows_, 41, attributes=0x10 | 0x40, producer_id=9)
    (batch,) = _read(data, 41)
    assert isinstance(batch, Batch)
    header = batch.header
    assert (header.base_offset, header.next_offset, header.record_count) == (41, 44, 3)
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (1000, 3000)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 0, 0)
    assert (header.leader_epoch, header.magic, header.size_bytes) == (7, 2, len(data))
    assert (header.is_transactional, header.has_delete_horizon) == (True, True)
    assert (header.is_control, header.is_log_append_time, header.has_holes) == (False, False, False)


def test_under_a_delete_horizon_the_base_timestamp_is_not_a_records() -> None:
    (batch,) = _read(make_batch([Row(timestamp=9000)], attributes=0x40, max_timestamp=1000))
    assert isinstance(batch, Batch)
    assert batch.header.first_timestamp_ms == 1000


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.lists(rows, min_size=1, max_size=4), st.sampled_from(CODECS)), max_size=4), st.data())
def test_whole_batches_are_cut_and_a_partial_one_is_left(
    parts: list[tuple[list[Row], int]], data: st.DataObject
) -> None:
    made = []
    offset = 5
    for batch_rows, codec in parts:
        made.append(make_batch(batch_rows, offset, codec))
        offset += len(batch_rows)
    whole = b"".join(made)
    rest = make_batch(_ROWS, offset)
    cut = data.draw(st.integers(0, len(rest) - 1)) if made else 0
    found = _read(whole + rest[:cut], 5)
    assert [bytes(batch.body) for batch in found if isinstance(batch, Batch)] == [part[61:] for part in made]


def test_no_bytes_are_no_batches() -> None:
    assert _read(b"") == []


@pytest.mark.parametrize("cut", [1, 16, 17, 60, 61, 70])
def test_a_first_batch_that_is_not_whole_is_damage(cut: int) -> None:
    with pytest.raises(
        CorruptBatchError, match=r"cluster nyc, topic orders, partition 3, offset 12: .* whole of their first"
    ):
        _read(make_batch(_ROWS, 12)[:cut], 12)


def test_a_wrong_checksum_names_partition_and_offset() -> None:
    data = bytearray(make_batch(_ROWS, 12) + make_batch(_ROWS, 14))
    data[-1] ^= 1
    with pytest.raises(CorruptBatchError, match=r"topic orders, partition 3, offset 14: .*CRC"):
        _read(bytes(data), 12)


@pytest.mark.parametrize("length", [-1, 0, 48, -(2**31)])
def test_a_length_below_a_header_is_damage(length: int) -> None:
    data = bytearray(make_batch(_ROWS, 12))
    struct.pack_into(">i", data, 8, length)
    with pytest.raises(CorruptBatchError, match=r"offset 12: .* less than a header"):
        _read(bytes(data), 12)


@pytest.mark.parametrize("magic", [3, 127, -1])
def test_an_unknown_format_is_named(magic: int) -> None:
    data = bytearray(make_batch(_ROWS, 12))
    struct.pack_into(">b", data, 16, magic)
    with pytest.raises(CorruptBatchError, match=f"offset 12: a batch has format {magic}"):
        _read(bytes(data), 12)


def test_more_records_than_offsets_are_damage() -> None:
    with pytest.raises(CorruptBatchError, match="2 records in 1 offsets"):
        _read(make_batch(_ROWS, 12, span=1), 12)


def test_old_messages_are_cut_too() -> None:
    data = legacy(3, 0, b"k", None) + legacy(4, 1, None, b"v", timestamp=99)
    first, second = _read(data + data[:20], 3)
    assert isinstance(first, LegacyMessage)
    assert isinstance(second, LegacyMessage)
    assert (first.offset, first.magic, first.timestamp_ms) == (3, 0, None)
    assert (second.offset, second.magic, second.timestamp_ms) == (4, 1, 99)


@pytest.mark.parametrize(("at", "problem"), [(-1, "CRC"), (8, "size")])
def test_a_damaged_old_message_names_the_offset(at: int, problem: str) -> None:
    data = bytearray(legacy(3, 1, b"k", b"v"))
    data[at] ^= 0x80
    with pytest.raises(CorruptBatchError, match=f"offset 3: .*{problem}"):
        _read(bytes(data), 3)
