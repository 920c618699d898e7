from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.util import decode_varint, encode_varint

from twinlog.wire.varint import append_varint, read_varint


@settings(max_examples=100, deadline=None)
@given(st.integers(-(2**63), 2**63 - 1))
def test_writes_and_reads_like_kafka_python(value: int) -> None:
    ours, theirs = bytearray(), bytearray()
    append_varint(ours, value)
    encode_varint(value, theirs.append)
    assert ours == theirs
    assert read_varint(bytes(ours), 0) == (value, len(ours)) == decode_varint(theirs)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff"])
def test_a_number_that_is_cut_off_is_an_index_error(data: bytes) -> None:
    with pytest.raises(IndexError):
        read_varint(data, 0)


@pytest.mark.parametrize("data", [b"\xff" * 10 + b"\x01", b"\xff" * 9 + b"\x02"])
def test_a_number_of_more_than_64_bits_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="more than"):
        read_varint(data, 0)
