"""Record bytes of a Fetch answer, cut into batches without opening them.

    | whole batch | whole batch | ... | partial |      one partition's bytes; the broker cuts them by size

Always: what is yielded has passed its checksum. A partial batch at the end is left for the next fetch. The
first batch is whole in every answer since Fetch 3, so a first batch that is not is damage too (its length
lies), and stopping there quietly would stall the partition for ever.

The base offset is outside the checksum (see `header`). Whoever follows the positions checks it for order
and bounds (`selection`); a damaged base offset that still looks like a compaction hole cannot be told from
one by any reader.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c

from twinlog.wire.header import (
    CRC_COVERS_FROM,
    HEADER,
    HEADER_BYTES,
    LENGTH_COUNTS_FROM,
    MAGIC,
    MAGIC_AT,
    BatchHeader,
)
from twinlog.wire.source import SourcePartition, corrupt

_LEGACY_HEADER = struct.Struct(">qiIbb")
_LEGACY_TIMESTAMP = struct.Struct(">q")
_LEGACY_SMALLEST_BYTES = (26, 34)  # formats 0 and 1, with a null key and a null value


class Batch(NamedTuple):
    """A whole batch of format 2, checksum verified, not opened."""

    header: BatchHeader
    body: memoryview
    """The records as stored, compressed or not: everything after the header."""

    @property
    def size_bytes(self) -> int:
        return self.header.size_bytes

    @property
    def next_offset(self) -> int:
        return self.header.next_offset


class LegacyMessage(NamedTuple):
    """A message of format 0 or 1, checksum verified; a compressed one wraps a set of such messages."""

    offset: int
    """Its own offset; for a wrapper, that of the last message inside."""
    magic: int
    attributes: int
    timestamp_ms: int | None
    """None in format 0, which has no timestamps."""
    payload: memoryview
    """Key and value, each after its length."""
    size_bytes: int

    @property
    def next_offset(self) -> int:
        return self.offset + 1


def read_batches(data: memoryview, source: SourcePartition, position: int) -> Iterator[Batch | LegacyMessage]:
    """Yield the whole batches of one partition's bytes; `position`, the offset asked for, is for messages."""
    end = len(data)
    at = 0
    expected = position
    while end - at > MAGIC_AT:
        if data[at + MAGIC_AT] == MAGIC:
            batch: Batch | LegacyMessage | None = _read_batch(data, at, source, expected)
        else:
            batch = read_legacy(data, at, source, expected)
        if batch is None:
            break
        at += batch.size_bytes
        expected = batch.next_offset
        yield batch
    if at == 0 and end:
        raise corrupt(source, position, f"the answer's {end} bytes do not hold the whole of their first batch")


def _read_batch(data: memoryview, at: int, source: SourcePartition, expected: int) -> Batch | None:
    left = len(data) - at
    if left < HEADER_BYTES:
        return None
    header = BatchHeader._make(HEADER.unpack_from(data, at))
    size = header.length + LENGTH_COUNTS_FROM
    if size < HEADER_BYTES:
        raise corrupt(source, expected, f"a batch gives its size as {size} bytes, less than a header has")
    if size > left:
        return None
    found = crc32c(data[at + CRC_COVERS_FROM : at + size])
    if found != header.crc:
        raise corrupt(
            source,
            expected,
            f"the batch there (base offset {header.base_offset}, {size} bytes) has CRC {found:08x}, "
            f"and its header says {header.crc:08x}",
        )
    if not 0 <= header.record_count <= header.last_offset_delta + 1:
        raise corrupt(
            source,
            expected,
            f"a batch claims {header.record_count} records in {header.last_offset_delta + 1} offsets",
        )
    return Batch(header, data[at + HEADER_BYTES : at + size])


def read_legacy(data: memoryview, at: int, source: SourcePartition, expected: int) -> LegacyMessage | None:
    """Read the message of format 0 or 1 that begins at `at`; None where it is cut off."""
    if len(data) - at < _LEGACY_HEADER.size:
        return None
    offset, length, crc, magic, attributes = _LEGACY_HEADER.unpack_from(data, at)
    if magic not in (0, 1):
        raise corrupt(source, expected, f"a batch has format {magic}, and only 0, 1 and 2 are known")
    size = length + LENGTH_COUNTS_FROM
    if size < _LEGACY_SMALLEST_BYTES[magic]:
        raise corrupt(source, expected, f"a message of format {magic} gives its size as {size} bytes")
    if size > len(data) - at:
        return None
    found = zlib.crc32(data[at + MAGIC_AT : at + size])
    if found != crc:
        raise corrupt(
            source,
            expected,
            f"a message of format {magic} has CRC {found:08x}, and its header says {crc:08x}",
        )
    payload_at = at + _LEGACY_HEADER.size
    timestamp_ms = None
    if magic == 1:
        (timestamp_ms,) = _LEGACY_TIMESTAMP.unpack_from(data, payload_at)
        payload_at += _LEGACY_TIMESTAMP.size
    return LegacyMessage(offset, magic, attributes, timestamp_ms, data[payload_at : at + size], size)
