from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder

from support.record_bytes import CODECS, SOURCE, Row, kafka_python_records, make_batch, rows
from twinlog.errors import CorruptBatchError
from twinlog.wire.reader import read_records


@settings(max_examples=60, deadline=None)
@given(st.lists(rows, min_size=1, max_size=6), st.sampled_from(CODECS), st.integers(0, 2**50))
def test_reads_what_kafka_python_reads(batch_rows: list[Row], codec: int, base_offset: int) -> None:
    data = make_batch(batch_rows, base_offset, codec)
    ours = [
        (r.offset, r.timestamp_ms, r.key, r.value, [(h.key.decode(), h.value) for h in r.headers])
        for r in read_records(memoryview(data), SOURCE, base_offset)
    ]
    assert ours == kafka_python_records(data)
    assert [(r[1], r[2], r[3], tuple(r[4])) for r in ours] == [
        (row.timestamp, row.key, row.value, row.headers) for row in batch_rows
    ]


def test_log_append_time_is_the_max_timestamp_for_every_record() -> None:
    data = make_batch([Row(timestamp=1), Row(timestamp=2)], attributes=0x08, max_timestamp=777)
    found = list(read_records(memoryview(data), SOURCE, 0))
    assert [(record.timestamp_ms, record.is_log_append_time) for record in found] == [(777, True), (777, True)]


def _with_body(body: bytes, codec: int = 0, count: int = 1) -> memoryview:
    """A batch with a right checksum over a body that is wrong in itself."""
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 20)
    for delta in range(count):
        builder.append(delta, 0, None, None, [])
    builder._buffer[61:] = body  # its own idea of the records is replaced; the header is written afterwards
    builder.write_header()
    return memoryview(bytes(builder._buffer))


@pytest.mark.parametrize(
    ("body", "codec", "problem"),
    [
        (b"", 0, "cannot be opened"),
        (b"\x7f\x00", 0, "a record of -64 bytes"),
        (b"\x40\x00\x00\x00", 0, "a record of 32 bytes where 3 are left"),
        (b"\x0c\x00\x00\x02\x01\x01\x00", 0, "offset delta 1 after -1"),
        (b"\x0c\x00\x00\x00\x01\x01\x00\x00", 0, "1 bytes are left after the last"),
        (b"\x0c\x00\x00\x00\x20\x01\x00", 0, "a field of 16 bytes where 2 are left"),
        (b"\x0c\x00\x00\x00\x01\x03\x00", 0, "a field of -2 bytes"),
        (b"\x0c\x00\x00\x00\x01\x01\x01", 0, "a count of -1 headers"),
        (b"\x10\x00\x00\x00\x01\x01\x02\x01\x01", 0, "a header without a key"),
        (b"\x0e\x00\x00\x00\x01\x01\x00\x00", 0, "1 bytes are left after the headers"),
        (b"nonsense", 1, "the gzip data cannot be opened"),
        (b"nonsense", 5, "compression 5 is not one"),
    ],
)
def test_a_body_that_lies_is_an_error_that_names_the_place(body: bytes, codec: int, problem: str) -> None:
    with pytest.raises(CorruptBatchError, match=f"topic orders, partition 3, offset 0: .*{problem}"):
        list(read_records(_with_body(body, codec), SOURCE, 0))
