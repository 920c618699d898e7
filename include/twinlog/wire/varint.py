"""Zigzag varints, as records of format 2 use them for lengths and deltas.

A value has at most 64 bits; a decoder that runs off its buffer raises IndexError, which callers turn into
an error that names the place.
"""

from __future__ import annotations

_UINT64 = (1 << 64) - 1


def append_varint(out: bytearray, value: int) -> None:
    """Write a signed number of at most 64 bits."""
    rest = ((value << 1) ^ (value >> 63)) & _UINT64
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)


def read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Read a signed number: its value, and the position after it."""
    byte = data[at]
    at += 1
    if byte < 0x80:  # nearly all lengths and deltas are this short
        return (byte >> 1) ^ -(byte & 1), at
    raw = byte & 0x7F
    shift = 7
    while True:
        byte = data[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise ValueError("a varint of more than ten bytes")
    if raw > _UINT64:
        raise ValueError("a varint of more than 64 bits")
    return (raw >> 1) ^ -(raw & 1), at
