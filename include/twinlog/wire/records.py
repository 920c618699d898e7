"""The records inside a batch, as its readers see them.

Two depths. `RawRecord` keeps everything from the key on as the bytes they were, so that what the encoder
writes again is exact by construction: null or empty keys and values, doubled headers, header keys that are
not UTF-8. `Record` is the opened form, for comparing.

Always: offsets rise strictly and lie within the batch, and there are as many records as its header says,
with no byte left over; anything else is an error that names the place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from twinlog.wire.batches import Batch
from twinlog.wire.codecs import CodecError, decompress
from twinlog.wire.source import SourcePartition, corrupt
from twinlog.wire.varint import read_varint


class RawRecord(NamedTuple):
    """A record with its key, value and headers left as bytes of format 2."""

    offset: int
    timestamp_ms: int
    """What readers see: under LogAppendTime the broker's, -1 where there is none."""
    attributes: int
    content: bytes
    """Key, value and headers, each after its length."""


class Header(NamedTuple):
    """One header of a record; keys may repeat."""

    key: bytes
    value: bytes | None


class Record(NamedTuple):
    """A record opened to the last field."""

    offset: int
    timestamp_ms: int
    is_log_append_time: bool
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


def read_raw(batch: Batch, source: SourcePartition) -> list[RawRecord]:
    """All records of a batch of format 2."""
    header = batch.header
    try:
        data = decompress(header.codec, bytes(batch.body))
        records = list(_split(batch, data))
    except (CodecError, IndexError, ValueError) as error:
        raise corrupt(source, header.base_offset, f"the batch there cannot be opened ({error})") from error
    return records


def _split(batch: Batch, data: bytes) -> Iterator[RawRecord]:
    header = batch.header
    base_offset, base_timestamp_ms = header.base_offset, header.base_timestamp_ms
    fixed_timestamp_ms = header.max_timestamp_ms if header.is_log_append_time else None
    last_delta = -1
    at = 0
    for _ in range(header.record_count):
        length, at = read_varint(data, at)
        end = at + length
        if length < 0 or end > len(data):
            raise ValueError(f"a record of {length} bytes where {len(data) - at} are left")
        attributes = data[at]
        timestamp_delta, at = read_varint(data, at + 1)
        offset_delta, at = read_varint(data, at)
        if not last_delta < offset_delta <= header.last_offset_delta or at > end:
            raise ValueError(f"a record with offset delta {offset_delta} after {last_delta}")
        last_delta = offset_delta
        timestamp_ms = base_timestamp_ms + timestamp_delta if fixed_timestamp_ms is None else fixed_timestamp_ms
        yield RawRecord(base_offset + offset_delta, timestamp_ms, attributes, data[at:end])
        at = end
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes are left after the last record")


def open_record(raw: RawRecord, source: SourcePartition, *, is_log_append_time: bool = False) -> Record:
    """Open key, value and headers."""
    try:
        key, value, headers = _open(raw.content)
    except (IndexError, ValueError) as error:
        raise corrupt(source, raw.offset, f"the record there cannot be opened ({error})") from error
    return Record(raw.offset, raw.timestamp_ms, is_log_append_time, key, value, headers)


def _open(content: bytes) -> tuple[bytes | None, bytes | None, tuple[Header, ...]]:
    key, at = _read_bytes(content, 0)
    value, at = _read_bytes(content, at)
    header_count, at = read_varint(content, at)
    if not 0 <= header_count <= len(content):
        raise ValueError(f"a count of {header_count} headers")
    headers = []
    for _ in range(header_count):
        name, at = _read_bytes(content, at)
        if name is None:
            raise ValueError("a header without a key")
        header_value, at = _read_bytes(content, at)
        headers.append(Header(name, header_value))
    if at != len(content):
        raise ValueError(f"{len(content) - at} bytes are left after the headers")
    return key, value, tuple(headers)


def _read_bytes(content: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = read_varint(content, at)
    if length == -1:
        return None, at
    end = at + length
    if length < 0 or end > len(content):
        raise ValueError(f"a field of {length} bytes where {len(content) - at} are left")
    return content[at:end], end
