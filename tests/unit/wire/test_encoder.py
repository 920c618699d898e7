from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.util import calc_crc32c

from support.record_bytes import CODECS, SOURCE, Row, kafka_python_records, make_batch, rows
from support.selecting import assert_adds_up, copied, produced, selecting
from twinlog.errors import BatchTooLargeError
from twinlog.wire.outgoing import Gaps
from twinlog.wire.reader import read_records
from twinlog.wire.verdict import Verdict

_COMPRESSIBLE = b"abcdefgh" * 100


@settings(max_examples=80, deadline=None)
@given(st.lists(rows, min_size=1, max_size=8), st.sampled_from(CODECS), st.data())
def test_holes_straddling_and_log_append_time_keep_what_readers_saw(
    batch_rows: list[Row], codec: int, data: st.DataObject
) -> None:
    deltas = sorted(data.draw(st.sets(st.integers(0, 12), min_size=len(batch_rows), max_size=len(batch_rows))))
    span = data.draw(st.integers(deltas[-1] + 1, 15))
    base = 1000
    by_broker = data.draw(st.booleans())
    start = data.draw(st.integers(base, base + span - 1))
    limit = data.draw(st.sampled_from([1 << 20, 1800]))
    source = make_batch(
        batch_rows,
        base,
        codec,
        deltas=deltas,
        span=span,
        attributes=0x08 if by_broker else 0,
        max_timestamp=424242 if by_broker else None,
    )
    selection = selecting(source, start, max_batch_bytes=1 << 20 if max(map(_size, batch_rows)) > 1600 else limit)
    assert copied(selection) == [record for record in kafka_python_records(source) if record[0] >= start]
    assert selection.end == base + span
    assert_adds_up(selection, start)
    for batch in selection.batches:
        assert batch.codec == source[22] & 7
        stamps = [record[1] for record in kafka_python_records(produced(batch))]
        assert batch.max_timestamp_ms == max(stamps)
        assert DefaultRecordBatch(produced(batch)).timestamp_type == 0


def _size(row: Row) -> int:
    return len(row.key or b"") + len(row.value or b"") + sum(len(k) * 2 + len(v or b"") for k, v in row.headers)


def test_log_append_time_becomes_create_time_with_the_brokers_stamp_on_every_record() -> None:
    source = make_batch([Row(timestamp=1), Row(timestamp=2)], 30, attributes=0x08, max_timestamp=777)
    selection = selecting(source, 30)
    assert selection.verdicts == {Verdict.LOG_APPEND_TIME: 1}
    (batch,) = selection.batches
    copy = DefaultRecordBatch(produced(batch))
    assert (copy.timestamp_type, copy.first_timestamp, copy.max_timestamp) == (0, 777, 777)
    assert [record[1] for record in copied(selection)] == [777, 777]


def test_runs_split_where_the_offsets_have_holes() -> None:
    source = make_batch([Row(timestamp=t) for t in (50, 70, 60, 10)], 5, deltas=[0, 1, 4, 5], span=8)
    selection = selecting(source, 3)
    (batch,) = selection.batches
    first, second = batch.runs
    assert (first.source_start, first.record_count, first.gaps) == (5, 2, Gaps(compacted=2))
    assert (second.source_start, second.record_count, second.gaps) == (9, 2, Gaps(compacted=2))
    assert (first.first_timestamp_ms, first.max_timestamp_ms) == (50, 70)
    assert (second.first_timestamp_ms, second.max_timestamp_ms) == (60, 60)
    assert selection.trailing == Gaps(compacted=2)
    assert selection.end == 13


@pytest.mark.parametrize("codec", CODECS)
def test_the_compression_is_kept(codec: int) -> None:
    source = make_batch([Row(value=_COMPRESSIBLE)] * 3, 0, codec, deltas=[0, 2, 3])
    selection = selecting(source)
    assert selection.verdicts == {Verdict.HOLES: 1}
    assert [DefaultRecordBatch(produced(batch)).compression_type for batch in selection.batches] == [codec]


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_is_too_large_is_split_by_records(codec: int) -> None:
    batch_rows = [Row(timestamp=1000 + index, value=os.urandom(700) + _COMPRESSIBLE) for index in range(20)]
    source = make_batch(batch_rows, 40, codec)
    selection = selecting(source, 40, max_batch_bytes=4000)
    assert selection.verdicts == {Verdict.TOO_LARGE: 1}
    assert len(selection.batches) > 1
    assert all(len(produced(batch)) <= 4000 for batch in selection.batches)
    assert copied(selection) == kafka_python_records(source)
    assert_adds_up(selection, 40)


def test_a_batch_of_just_the_size_goes_whole() -> None:
    source = make_batch([Row(value=b"x" * 500)] * 2)
    assert selecting(source, max_batch_bytes=len(source)).verdicts == {Verdict.WHOLE: 1}
    assert selecting(source, max_batch_bytes=len(source) - 1).verdicts == {Verdict.TOO_LARGE: 1}


def test_a_record_that_is_too_large_alone_is_named_with_the_sizes() -> None:
    source = make_batch([Row(), Row(value=b"x" * 5000)], 70)
    with pytest.raises(
        BatchTooLargeError, match=r"topic orders, partition 3, offset 71: .* 50\d\d bytes.* 4000"
    ) as caught:
        selecting(source, 70, max_batch_bytes=4000)
    assert not caught.value.retriable


def test_header_keys_that_are_not_utf_8_are_kept_byte_by_byte() -> None:
    # kafka-python's builder takes text only, so the key is put in afterwards and the checksum made right again.
    made = make_batch([Row(headers=(("zz", b"1"),)), Row()], 0, deltas=[0, 2]).replace(b"zz", b"\xff\xfe")
    source = made[:17] + calc_crc32c(made[21:]).to_bytes(4, "big") + made[21:]
    (batch,) = selecting(source).batches
    (first, _) = read_records(memoryview(produced(batch)), SOURCE, 0)
    assert first.headers == ((b"\xff\xfe", b"1"),)
