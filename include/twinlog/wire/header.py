"""The header of a record batch of format 2: 61 bytes, big-endian, read with one unpack.

     0 base offset            8    12 leader epoch   4    21 attributes         2
     8 length of what follows 4    16 magic          1    23 last offset delta  4
                                   17 CRC-32C        4    27 base timestamp     8
                                                          35 max timestamp      8
                                                          43 producer id        8
                                                          51 producer epoch     2
                                                          53 base sequence      4
                                                          57 record count       4
                                                          61 records

The CRC covers everything from the attributes on. Base offset, length, leader epoch and magic are outside
it, so that a broker may set them; nothing but order and plausibility protects those.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
LENGTH_COUNTS_FROM = 12
MAGIC_AT = 16
CRC_COVERS_FROM = 21

MAGIC = 2
NO_TIMESTAMP = -1

CODEC_BITS = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40


class BatchHeader(NamedTuple):
    """What a batch says about itself, in the order of the bytes."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        """The whole batch, header included: what a broker compares with max.message.bytes."""
        return self.length + LENGTH_COUNTS_FROM

    @property
    def next_offset(self) -> int:
        """The offset after the batch's last, also where compaction has removed that record."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_BITS

    @property
    def is_log_append_time(self) -> bool:
        """Readers see the max timestamp for every record, whatever the records say."""
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_delete_horizon(self) -> bool:
        """The log cleaner stamped it: the base timestamp is then the time when its tombstones go."""
        return bool(self.attributes & DELETE_HORIZON_BIT)

    @property
    def has_holes(self) -> bool:
        """Compaction took records out. Offsets in a batch rise strictly, so counting is enough to know."""
        return self.record_count != self.last_offset_delta + 1

    @property
    def first_timestamp_ms(self) -> int:
        """The first record's timestamp, as nearly as an unopened batch tells it.

        Under a delete horizon the base timestamp lies in the future; the max timestamp is the best bound.
        """
        if self.attributes & (DELETE_HORIZON_BIT | LOG_APPEND_TIME_BIT):
            return self.max_timestamp_ms
        return self.base_timestamp_ms
