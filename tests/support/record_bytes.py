"""Record bytes for tests, made and read by kafka-python, so that twinlog's own code is on one side only.

kafka-python asks for python-snappy; cramjam's raw snappy stands in for it here.
"""

from __future__ import annotations

import struct
import types
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import cramjam
import kafka.codec
from hypothesis import strategies as st
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.util import calc_crc32c

from twinlog.wire.source import SourcePartition

SOURCE = SourcePartition("nyc", "orders", 3)
CODECS = (0, 1, 2, 3, 4)

kafka.codec.snappy = types.SimpleNamespace(
    compress=lambda data: bytes(cramjam.snappy.compress_raw(data)),
    decompress=lambda data: bytes(cramjam.snappy.decompress_raw(data)),
)

_HEADER = DefaultRecordBatchBuilder.HEADER_STRUCT


@dataclass(frozen=True)
class Row:
    """A record as a producer gives it; `headers` are (key, value)."""

    timestamp: int = 1_700_000_000_000
    key: bytes | None = None
    value: bytes | None = b"v"
    headers: tuple[tuple[str, bytes | None], ...] = ()


def make_batch(
    rows: Sequence[Row],
    base_offset: int = 0,
    codec: int = 0,
    *,
    deltas: Sequence[int] | None = None,
    span: int | None = None,
    attributes: int = 0,
    producer_id: int = -1,
    max_timestamp: int | None = None,
) -> bytes:
    """A batch as a broker would serve it; `deltas` and `span` leave holes, `attributes` are added to the codec's."""
    builder = DefaultRecordBatchBuilder(2, codec, False, producer_id, 0, 0, 1 << 30)
    for delta, row in zip(deltas or range(len(rows)), rows, strict=True):
        builder.append(delta, row.timestamp, row.key, row.value, list(row.headers))
    data = builder.build()
    fields = list(_HEADER.unpack_from(data))
    fields[0] = base_offset
    fields[2] = 7  # leader epoch
    fields[5] |= attributes
    if span is not None:
        fields[6] = span - 1
    if max_timestamp is not None:
        fields[8] = max_timestamp
    return _seal(fields, bytes(data[_HEADER.size :]))


def _seal(fields: list[int], body: bytes) -> bytes:
    fields[4] = 0
    fields[4] = calc_crc32c(_HEADER.pack(*fields)[21:] + body)
    return _HEADER.pack(*fields) + body


def emptied_batch(base_offset: int, span: int) -> bytes:
    """What compaction leaves of a batch whose records are all gone."""
    return make_batch([], base_offset, span=span)


def marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
    """The control batch that ends a transaction."""
    row = Row(key=struct.pack(">hh", 0, int(commit)), value=b"\0" * 6)
    return make_batch([row], offset, attributes=0x30, producer_id=producer_id)


def legacy(
    offset: int,
    magic: int,
    key: bytes | None,
    value: bytes | None,
    *,
    timestamp: int = 0,
    attributes: int = 0,
) -> bytes:
    """One message of format 0 or 1."""
    message = struct.pack(">bb", magic, attributes)
    if magic == 1:
        message += struct.pack(">q", timestamp)
    for field in (key, value):
        message += struct.pack(">i", -1 if field is None else len(field)) + (field or b"")
    return struct.pack(">qiI", offset, len(message) + 4, zlib.crc32(message)) + message


def kafka_python_records(data: bytes) -> list[tuple[int, int | None, bytes | None, bytes | None, list[object]]]:
    """(offset, timestamp, key, value, headers) of every record, as kafka-python reads them, checksums verified."""
    found = []
    batches = MemoryRecords(data)
    while (batch := batches.next_batch()) is not None:
        assert batch.validate_crc()
        found += [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in batch]
    return found


_blobs = (
    st.none()
    | st.binary(max_size=12)
    | st.builds(lambda b, n: b * n, st.binary(min_size=1, max_size=3), st.integers(1, 400))
)

rows = st.builds(
    Row,
    timestamp=st.just(-1) | st.integers(0, 2**42),
    key=_blobs,
    value=_blobs,
    headers=st.lists(
        st.tuples(st.sampled_from(["", "a", "trace", "ключ"]), st.none() | st.binary(max_size=8)), max_size=3
    ).map(tuple),
)
