"""The bytes of an outgoing batch under the writer's own producer id, epoch and sequence.

Always: records, compression and timestamps are the ones given; of the attributes only the compression
survives, and in a transaction its bit is set. Timestamp type, control and delete horizon are the target's own
matters.

A Produce request carries one batch for each partition, and batches are never merged (that would mean
opening them), so a source full of small batches costs a request a batch and partition. Accepted for now.
"""

from __future__ import annotations

import struct

from crc32c import crc32c

from twinlog.wire.header import HEADER_BYTES, LENGTH_COUNTS_FROM, MAGIC, TRANSACTIONAL_BIT
from twinlog.wire.outgoing import OutgoingBatch

_OUTSIDE_CRC = struct.Struct(">qiibI")
_INSIDE_CRC = struct.Struct(">hiqqqhii")

_NO_LEADER_EPOCH = -1
_NO_PRODUCER = -1
_SEQUENCES = 1 << 31


def restamp(
    batch: OutgoingBatch, *, producer_id: int, producer_epoch: int, base_sequence: int
) -> tuple[bytes, memoryview | bytes]:
    """The batch of a transaction as a header and a body, to be joined in the request, so that it is copied once."""
    return _stamped(batch, batch.codec | TRANSACTIONAL_BIT, producer_id, producer_epoch, base_sequence)


def stamp_plain(batch: OutgoingBatch) -> tuple[bytes, memoryview | bytes]:
    """The same for a batch outside any transaction, from no producer that the broker would know again."""
    return _stamped(batch, batch.codec, _NO_PRODUCER, _NO_PRODUCER, _NO_PRODUCER)


def _stamped(
    batch: OutgoingBatch, attributes: int, producer_id: int, producer_epoch: int, base_sequence: int
) -> tuple[bytes, memoryview | bytes]:
    body = batch.body
    covered = _INSIDE_CRC.pack(
        attributes,
        batch.record_count - 1,
        batch.base_timestamp_ms,
        batch.max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        batch.record_count,
    )
    length = HEADER_BYTES - LENGTH_COUNTS_FROM + len(body)
    crc = crc32c(body, crc32c(covered))
    return _OUTSIDE_CRC.pack(0, length, _NO_LEADER_EPOCH, MAGIC, crc) + covered, body


def next_sequence(base_sequence: int, count: int) -> int:
    """The base sequence after a batch of `count` records: sequences are 31 bits and begin again at 0."""
    return (base_sequence + count) % _SEQUENCES
