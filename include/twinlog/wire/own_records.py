"""Batches of Twinlog's own records, for the journal and the state topic: keys and values, no headers."""

from __future__ import annotations

from collections.abc import Iterable

from twinlog.wire.encoder import encode
from twinlog.wire.outgoing import NO_GAPS, OutgoingBatch
from twinlog.wire.records import RawRecord
from twinlog.wire.source import SourcePartition
from twinlog.wire.varint import append_varint

UNCOMPRESSED = 0


def build_batches(
    pairs: Iterable[tuple[bytes, bytes | None]], timestamp_ms: int, *, max_batch_bytes: int, target: SourcePartition
) -> list[OutgoingBatch]:
    """Batches that hold these keys and values in order; `target` is for messages."""
    records = [RawRecord(offset, timestamp_ms, 0, _content(key, value)) for offset, (key, value) in enumerate(pairs)]
    return encode(records, UNCOMPRESSED, NO_GAPS, max_batch_bytes=max_batch_bytes, source=target)


def _content(key: bytes, value: bytes | None) -> bytes:
    out = bytearray()
    append_varint(out, len(key))
    out += key
    append_varint(out, -1 if value is None else len(value))
    out += value or b""
    append_varint(out, 0)
    return bytes(out)
