"""Digests of copied records, equal on both sides: 64 bits, CRC-32C above and the length of the bytes below.

A piece is either a whole outgoing batch, digested as stored (compression, base timestamp, count, body: what
restamping leaves alone; the max timestamp is left out, brokers may correct it), or, where holes divide a
batch into several runs, the records of one run, digested as values. Which of the two applies shows on the
target without asking: a batch that lies wholly inside a segment was digested whole. A segment's digest is
its pieces' chained in order.

CRC-32C because it costs a tenth of what a cryptographic hash does (hardware, some GB/s) and what it must
find is damage and mix-ups, not forgery; with the length beside it, 2^-32 is the chance to miss a random
change.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Protocol

from crc32c import crc32c

EMPTY = 0

_BATCH = struct.Struct(">bqi")
_RECORD = struct.Struct(">qbi")
_PIECE = struct.Struct(">Q")
_UINT32 = 0xFFFFFFFF


class DigestedRecord(Protocol):
    """What counts of a record: timestamp, attributes and the bytes from the key on; not the offset."""

    @property
    def timestamp_ms(self) -> int: ...
    @property
    def attributes(self) -> int: ...
    @property
    def content(self) -> bytes: ...


def digest_batch(codec: int, base_timestamp_ms: int, count: int, body: memoryview | bytes) -> int:
    """The piece for a batch taken whole."""
    crc: int = crc32c(body, crc32c(_BATCH.pack(codec, base_timestamp_ms, count)))
    return crc << 32 | len(body)


def digest_records(records: Iterable[DigestedRecord]) -> int:
    """The piece for some records of a batch."""
    crc = 0
    length = 0
    for record in records:
        crc = crc32c(_RECORD.pack(record.timestamp_ms, record.attributes, len(record.content)), crc)
        crc = crc32c(record.content, crc)
        length += len(record.content)
    return crc << 32 | length & _UINT32


def chain(digest: int, piece: int) -> int:
    """A segment's digest with one more piece at its end; begin with `EMPTY`."""
    crc: int = crc32c(_PIECE.pack(piece), digest >> 32)
    return crc << 32 | (digest + piece) & _UINT32


def text(digest: int) -> str:
    """As the ledger keeps it: 16 hexadecimal digits."""
    return f"{digest:016x}"
