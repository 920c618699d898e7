"""A record's bytes with one more header behind those that it has; nothing else of it changes."""

from __future__ import annotations

from twinlog.wire.varint import append_varint, read_varint


def with_header(content: bytes, name: bytes, value: bytes) -> bytes:
    """`content` is key, value and headers, as format 2 stores them (see `records.RawRecord`)."""
    at = _after_bytes(content, _after_bytes(content, 0))
    count, after = read_varint(content, at)
    out = bytearray(content[:at])
    append_varint(out, count + 1)
    out += content[after:]
    for part in (name, value):
        append_varint(out, len(part))
        out += part
    return bytes(out)


def _after_bytes(content: bytes, at: int) -> int:
    length, at = read_varint(content, at)
    return at + max(length, 0)
