"""Records into new batches, for those that cannot go as they are.

Always: every record comes out once, in order, with its timestamp, key, value and headers as readers of the
source saw them; the batches are dense, CreateTime and no larger than the limit; the runs tell which source
offsets the records had.

    in    offsets 5 6 . 9 10        (7 and 8 compacted away)
    out   deltas  0 1   2  3        runs: 5+2, then 9+2 after a gap of 2
"""

from __future__ import annotations

from collections.abc import Sequence

from twinlog.errors import BatchTooLargeError
from twinlog.wire.codecs import compress
from twinlog.wire.digest import digest_batch, digest_records
from twinlog.wire.header import HEADER_BYTES
from twinlog.wire.outgoing import Gaps, OutgoingBatch, Run
from twinlog.wire.records import RawRecord
from twinlog.wire.source import SourcePartition
from twinlog.wire.varint import append_varint


def encode(
    records: Sequence[RawRecord], codec: int, gaps: Gaps, *, max_batch_bytes: int, source: SourcePartition
) -> list[OutgoingBatch]:
    """Batches for records, of which there is at least one; `gaps` lie before the first of them."""
    body, ends = _body(records)
    compressed = compress(codec, body)
    size = HEADER_BYTES + len(compressed)
    if size <= max_batch_bytes:
        return [_batch(records, codec, gaps, compressed, ends)]
    if len(records) == 1:
        raise BatchTooLargeError(
            f"{source}, offset {records[0].offset}: this record alone makes a batch of {size} bytes, and the "
            f"target accepts {max_batch_bytes}; raise its topic's max.message.bytes to at least {size}"
        )
    cut = _half(ends)
    hole = records[cut].offset - records[cut - 1].offset - 1
    return [
        *encode(records[:cut], codec, gaps, max_batch_bytes=max_batch_bytes, source=source),
        *encode(records[cut:], codec, Gaps(compacted=hole), max_batch_bytes=max_batch_bytes, source=source),
    ]


def _body(records: Sequence[RawRecord]) -> tuple[bytes, list[int]]:
    """The records as format 2 stores them, with deltas to the first, and where each of them ends."""
    base_timestamp_ms = records[0].timestamp_ms
    out = bytearray()
    ends = []
    for delta, record in enumerate(records):
        head = bytearray((record.attributes,))
        append_varint(head, record.timestamp_ms - base_timestamp_ms)
        append_varint(head, delta)
        append_varint(out, len(head) + len(record.content))
        out += head
        out += record.content
        ends.append(len(out))
    return bytes(out), ends


def _half(ends: list[int]) -> int:
    """How many records make about half of the bytes: at least one, and not all."""
    middle = ends[-1] // 2
    cut = sum(1 for end in ends if end <= middle)
    return min(max(cut, 1), len(ends) - 1)


def _batch(records: Sequence[RawRecord], codec: int, gaps: Gaps, body: bytes, ends: list[int]) -> OutgoingBatch:
    base_timestamp_ms = records[0].timestamp_ms
    max_timestamp_ms = max(record.timestamp_ms for record in records)
    starts = [
        index for index, record in enumerate(records) if index == 0 or record.offset != records[index - 1].offset + 1
    ]
    size = HEADER_BYTES + len(body)
    runs = []
    spent = 0
    for first, after in zip(starts, [*starts[1:], len(records)], strict=True):
        part = records[first:after]
        # Shares of the compressed size cannot be known, so they follow the uncompressed one.
        share = size * ends[after - 1] // ends[-1]
        runs.append(
            Run(
                source_start=part[0].offset,
                record_count=len(part),
                gaps=gaps if first == 0 else Gaps(compacted=part[0].offset - records[first - 1].offset - 1),
                size_bytes=share - spent,
                first_timestamp_ms=part[0].timestamp_ms,
                max_timestamp_ms=max(record.timestamp_ms for record in part),
                digest=(
                    digest_batch(codec, base_timestamp_ms, len(records), body)
                    if len(starts) == 1
                    else digest_records(part)
                ),
            )
        )
        spent = share
    return OutgoingBatch(codec, base_timestamp_ms, max_timestamp_ms, len(records), body, tuple(runs))
