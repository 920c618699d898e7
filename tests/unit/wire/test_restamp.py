from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch

from support.record_bytes import CODECS, Row, kafka_python_records, make_batch, rows
from support.selecting import selecting
from twinlog.wire.restamp import next_sequence, restamp, stamp_plain

_FOREIGN_BITS = [0x00, 0x10, 0x40, 0x50]  # transactional, delete horizon


@settings(max_examples=60, deadline=None)
@given(
    st.lists(rows, min_size=1, max_size=6),
    st.sampled_from(CODECS),
    st.sampled_from(_FOREIGN_BITS),
    st.integers(0, 2**31 - 1),
)
def test_readers_see_the_same_records_under_a_new_header(
    batch_rows: list[Row], codec: int, bits: int, sequence: int
) -> None:
    source = make_batch(batch_rows, 900, codec, attributes=bits, producer_id=11)
    (batch,) = selecting(source, 900).batches
    header, body = restamp(batch, producer_id=4000, producer_epoch=2, base_sequence=sequence)
    copy = header + body
    assert len(header) == 61
    assert copy[61:] == source[61:]
    seen = [record[1:] for record in kafka_python_records(copy)]
    assert seen == [record[1:] for record in kafka_python_records(source)]

    read, before = DefaultRecordBatch(copy), DefaultRecordBatch(source)
    assert (read.base_offset, read.leader_epoch, read.magic) == (0, -1, 2)
    assert (read.producer_id, read.producer_epoch, read.base_sequence) == (4000, 2, sequence)
    assert read.attributes == before.compression_type | 0x10
    assert (read.first_timestamp, read.max_timestamp) == (before.first_timestamp, before.max_timestamp)
    assert (read.last_offset_delta, read.records_count) == (len(batch_rows) - 1, len(batch_rows))
    assert read.size_in_bytes == batch.size_bytes == len(copy)


def test_the_leader_epoch_is_unknown_in_bytes() -> None:
    (batch,) = selecting(make_batch([Row()])).batches
    header, _ = restamp(batch, producer_id=1, producer_epoch=0, base_sequence=0)
    assert struct.unpack_from(">I", header, 12) == (0xFFFFFFFF,)


@pytest.mark.parametrize(
    ("base", "count", "after"),
    [(0, 10, 10), (2**31 - 11, 10, 2**31 - 1), (2**31 - 10, 10, 0), (2**31 - 1, 1, 0), (2**31 - 3, 10, 7)],
)
def test_sequences_begin_again_after_the_largest(base: int, count: int, after: int) -> None:
    assert next_sequence(base, count) == after
    made = DefaultRecordBatch(make_batch([Row()]))
    assert made._increment_sequence(base, count) == after


def test_outside_a_transaction_a_batch_is_from_no_producer() -> None:
    source = make_batch([Row(key=b"k", value=b"v")], 900, CODECS[0], attributes=0x10, producer_id=11)
    (batch,) = selecting(source, 900).batches
    copy = DefaultRecordBatch(b"".join(stamp_plain(batch)))
    assert copy.validate_crc()
    assert (copy.producer_id, copy.producer_epoch, copy.base_sequence, copy.attributes) == (-1, -1, -1, 0)
