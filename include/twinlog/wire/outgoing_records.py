"""The records inside an outgoing batch, at the offsets that they have in the log it was selected from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from twinlog.model.record_comparison import RecordFact
from twinlog.wire.batches import Batch
from twinlog.wire.header import HEADER_BYTES, LENGTH_COUNTS_FROM, MAGIC, BatchHeader
from twinlog.wire.outgoing import OutgoingBatch
from twinlog.wire.records import RawRecord, read_raw
from twinlog.wire.source import SourcePartition, corrupt
from twinlog.wire.varint import read_varint

_SHORT_BYTES = 16
_PLAIN, _DIGESTED = b"\x00", b"\x01"


def open_outgoing(batch: OutgoingBatch, source: SourcePartition) -> list[RawRecord]:
    """Its records, as many as its runs say, in order."""
    header = BatchHeader(
        base_offset=batch.runs[0].source_start,
        length=HEADER_BYTES - LENGTH_COUNTS_FROM + len(batch.body),
        leader_epoch=-1,
        magic=MAGIC,
        crc=0,
        attributes=batch.codec,
        last_offset_delta=batch.record_count - 1,
        base_timestamp_ms=batch.base_timestamp_ms,
        max_timestamp_ms=batch.max_timestamp_ms,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=batch.record_count,
    )
    records = read_raw(Batch(header, memoryview(batch.body)), source)
    if len(batch.runs) == 1:
        return records
    offsets = (offset for run in batch.runs for offset in range(run.source_start, run.source_end))
    return [record._replace(offset=offset) for record, offset in zip(records, offsets, strict=True)]


def facts_of(batch: OutgoingBatch, source: SourcePartition) -> Iterator[RecordFact]:
    """Its records as they are compared."""
    for record in open_outgoing(batch, source):
        content = record.content
        try:
            key, at = _field(content, 0)
            value, at = _field(content, at)
        except (IndexError, ValueError) as error:
            raise corrupt(source, record.offset, f"the record there cannot be opened ({error})") from error
        yield RecordFact(record.offset, record.timestamp_ms, _short(key), _short(value), _digest(content[at:]))


def _field(content: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = read_varint(content, at)
    if length < 0:
        return None, at
    if at + length > len(content):
        raise ValueError(f"a field of {length} bytes where {len(content) - at} are left")
    return content[at : at + length], at + length


def _short(data: bytes | None) -> bytes | None:
    return None if data is None else _digest(data)


def _digest(data: bytes) -> bytes:
    """Short enough to keep many; no plain value can be taken for a digest."""
    if len(data) <= _SHORT_BYTES:
        return _PLAIN + data
    return _DIGESTED + hashlib.blake2b(data, digest_size=_SHORT_BYTES).digest()
