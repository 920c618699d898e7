from __future__ import annotations

import kafka.codec
import lz4.frame
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.record_bytes import SOURCE, kafka_python_records, legacy
from support.selecting import assert_adds_up, copied, selecting
from twinlog.errors import CorruptBatchError
from twinlog.wire.reader import read_records

_FIELD = st.none() | st.binary(max_size=20)
_ENCODERS = {1: kafka.codec.gzip_encode, 2: kafka.codec.snappy_encode, 3: kafka.codec.lz4_encode}


def _wrapped(inner: bytes, last_offset: int, magic: int, codec: int, *, timestamp: int = 0, flags: int = 0) -> bytes:
    return legacy(last_offset, magic, None, _ENCODERS[codec](inner), timestamp=timestamp, attributes=codec | flags)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([0, 1]),
    st.lists(st.tuples(_FIELD, _FIELD, st.just(-1) | st.integers(0, 2**42)), min_size=1, max_size=5),
    st.sampled_from([0, 1, 2, 3]),
    st.sets(st.integers(0, 9), min_size=5, max_size=5).map(sorted),
    st.booleans(),
)
def test_readers_of_the_copy_see_what_kafka_python_sees(
    magic: int, fields: list[tuple[bytes | None, bytes | None, int]], codec: int, deltas: list[int], by_broker: bool
) -> None:
    if magic == 0 and codec == 3:
        codec = 2  # kafka-python needs xxhash for lz4 in format 0; that has a test of its own
    base = 100
    if codec:
        inner_base = base if magic == 0 else 0
        inner = b"".join(
            legacy(inner_base + delta, magic, key, value, timestamp=stamp)
            for delta, (key, value, stamp) in zip(deltas, fields, strict=False)
        )
        last = base + deltas[len(fields) - 1]
        data = _wrapped(inner, last, magic, codec, timestamp=555, flags=0x08 if by_broker and magic else 0)
    else:
        data = b"".join(
            legacy(base + delta, magic, key, value, timestamp=stamp)
            for delta, (key, value, stamp) in zip(deltas, fields, strict=False)
        )
    expected = [
        (offset, -1 if stamp is None else stamp, key, value, headers)
        for offset, stamp, key, value, headers in kafka_python_records(data)
    ]
    selection = selecting(data, 100)
    assert copied(selection) == expected
    assert {batch.codec for batch in selection.batches} == {codec}
    assert_adds_up(selection, 100)
    ours = [(r.offset, r.timestamp_ms, r.key, r.value, []) for r in read_records(memoryview(data), SOURCE, 100)]
    assert ours == expected


def test_uncompressed_messages_in_a_row_are_sent_as_one_batch() -> None:
    data = b"".join(legacy(offset, 1, None, b"v", timestamp=7) for offset in range(10, 30))
    (batch,) = selecting(data, 10).batches
    assert (batch.record_count, batch.runs[0].source_start) == (20, 10)


def test_the_records_before_the_start_are_left_out() -> None:
    inner = b"".join(legacy(offset, 1, None, b"%d" % offset) for offset in range(5))
    selection = selecting(_wrapped(inner, 104, 1, 1), 103)
    assert [(record[0], record[3]) for record in copied(selection)] == [(103, b"3"), (104, b"4")]
    assert_adds_up(selection, 103)


def test_lz4_of_format_0_is_opened() -> None:
    inner = legacy(100, 0, b"k", b"v" * 500) + legacy(101, 0, b"k", None)
    frame = bytearray(lz4.frame.compress(inner, block_linked=False, store_size=False))
    frame[6] ^= 0xFF  # as clients of the time wrote it
    selection = selecting(legacy(101, 0, None, bytes(frame), attributes=3), 100)
    assert [(record[0], record[3]) for record in copied(selection)] == [(100, b"v" * 500), (101, None)]


_INNER = legacy(0, 1, None, b"a")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (legacy(7, 1, None, None, attributes=1), "without a value"),
        (_wrapped(_INNER[:-1], 7, 1, 1), "cut off"),
        (_wrapped(b"", 7, 1, 1), "wraps nothing"),
        (_wrapped(legacy(0, 0, None, b"a"), 7, 1, 1), "another format"),
        (_wrapped(legacy(0, 1, None, b"a", attributes=1), 7, 1, 1), "another compressed one"),
        (_wrapped(_INNER + _INNER, 7, 1, 1), "offset 7 follows 7"),
        (_wrapped(legacy(5, 0, None, b"a"), 7, 0, 1), "offsets 5 to 5 are wrapped"),
        (_wrapped(_INNER[:-1] + b"x", 7, 1, 1), "CRC"),
        (legacy(7, 1, None, b"nonsense", attributes=1), "gzip data cannot be opened"),
    ],
    # By the problem: gzip's bytes hold the time, so the data's would differ from one collection to the next.
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrapper_that_lies_is_an_error_that_names_the_place(data: bytes, problem: str) -> None:
    with pytest.raises(CorruptBatchError, match=f"topic orders, partition 3, offset 7: .*{problem}"):
        selecting(data, 7)
