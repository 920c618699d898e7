"""Messages of formats 0 and 1 turned into records as their readers see them.

    uncompressed   one message is one record
    compressed     the wrapper's value holds a set of messages, and the wrapper's offset is the last one's:

        wrapper 107 ( 0  1  3 )      format 1: relative, so the offsets are 104, 105, 107 (106 was compacted)
        wrapper 107 ( 104 105 107 )  format 0: absolute

Timestamps: format 0 has none (-1). In format 1 a wrapper stamped LogAppendTime stamps all that it wraps.
"""

from __future__ import annotations

import struct

from twinlog.wire.batches import LegacyMessage, read_legacy
from twinlog.wire.codecs import CodecError, decompress
from twinlog.wire.header import CODEC_BITS, LOG_APPEND_TIME_BIT, NO_TIMESTAMP
from twinlog.wire.records import RawRecord
from twinlog.wire.source import SourcePartition, corrupt
from twinlog.wire.varint import append_varint

_LENGTH = struct.Struct(">i")


def read_message(message: LegacyMessage, source: SourcePartition) -> list[RawRecord]:
    """The records of one message: itself, or those that it wraps."""
    try:
        if not message.attributes & CODEC_BITS:
            return [_record(message, message.offset, _timestamp_ms(message))]
        return _unwrap(message, source)
    except (CodecError, ValueError, struct.error) as error:
        raise corrupt(
            source, message.offset, f"the message of format {message.magic} there cannot be opened ({error})"
        ) from error


def _unwrap(wrapper: LegacyMessage, source: SourcePartition) -> list[RawRecord]:
    _, wrapped = _key_and_value(wrapper.payload)
    if wrapped is None:
        raise ValueError("a compressed message without a value")
    codec = wrapper.attributes & CODEC_BITS
    inner = _messages(decompress(codec, wrapped, format_0=wrapper.magic == 0), wrapper, source)
    base_offset = wrapper.offset - inner[-1].offset if wrapper.magic == 1 else 0
    is_log_append_time = is_stamped_by_broker(wrapper)
    records: list[RawRecord] = []
    for message in inner:
        offset = base_offset + message.offset
        if message.magic != wrapper.magic or message.attributes & CODEC_BITS:
            raise ValueError("a compressed message wraps one of another format or another compressed one")
        if records and offset <= records[-1].offset:
            raise ValueError(f"offset {offset} follows {records[-1].offset}")
        records.append(_record(message, offset, _timestamp_ms(wrapper if is_log_append_time else message)))
    if records[-1].offset != wrapper.offset or records[0].offset < 0:
        raise ValueError(f"offsets {records[0].offset} to {records[-1].offset} are wrapped")
    return records


def _messages(data: bytes, wrapper: LegacyMessage, source: SourcePartition) -> list[LegacyMessage]:
    view = memoryview(data)
    found = []
    at = 0
    while at < len(view):
        message = read_legacy(view, at, source, wrapper.offset)
        if message is None:
            raise ValueError("the last wrapped message is cut off")
        found.append(message)
        at += message.size_bytes
    if not found:
        raise ValueError("a compressed message wraps nothing")
    return found


def is_stamped_by_broker(message: LegacyMessage) -> bool:
    """Whether the timestamp is the broker's (LogAppendTime); format 0 knows no such thing."""
    return message.magic == 1 and bool(message.attributes & LOG_APPEND_TIME_BIT)


def _timestamp_ms(message: LegacyMessage) -> int:
    return NO_TIMESTAMP if message.timestamp_ms is None else message.timestamp_ms


def _record(message: LegacyMessage, offset: int, timestamp_ms: int) -> RawRecord:
    content = bytearray()
    for field in _key_and_value(message.payload):
        append_varint(content, -1 if field is None else len(field))
        content += field or b""
    append_varint(content, 0)  # headers came with format 2
    return RawRecord(offset, timestamp_ms, 0, bytes(content))


def _key_and_value(payload: memoryview) -> tuple[bytes | None, bytes | None]:
    key, at = _read_field(payload, 0)
    value, at = _read_field(payload, at)
    if at != len(payload):
        raise ValueError(f"{len(payload) - at} bytes are left after the value")
    return key, value


def _read_field(payload: memoryview, at: int) -> tuple[bytes | None, int]:
    (length,) = _LENGTH.unpack_from(payload, at)
    at += _LENGTH.size
    if length == -1:
        return None, at
    if not 0 <= length <= len(payload) - at:
        raise ValueError(f"a field of {length} bytes where {len(payload) - at} are left")
    return bytes(payload[at : at + length]), at + length
