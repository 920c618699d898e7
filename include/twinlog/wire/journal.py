"""The journal's records as bytes.

The key is what makes an entry unique: both topics' ids, the partition and the first source offset that the entry
accounts for, gaps included (a segment of gaps only ends where the next one's records begin). The log cleaner then keeps
one entry a segment, and an entry with no value removes it. Both parts begin with a version byte, so that a
reader can tell a newer writer from damage.

    key    version, source topic id, target topic id, partition, span start (source start less the gaps)
    value  version, target start, count, first and last timestamp, bytes, digest, copied at, source seen end,
           source epoch, number of gaps, (kind, offsets)*,
           then flow, run, source topic, target topic as length-prefixed UTF-8

Values of version 1, which are still read, lack what is known of the source. The key is as it was, so that one is found
by it in whichever version it was written.
"""

from __future__ import annotations

import struct
from uuid import UUID

from twinlog.errors import JournalFormatError
from twinlog.model.offsets import UNKNOWN, GapKind, JournalEntry, PartitionPair, Segment

VERSION = 2
KEY_VERSION = 1
_WITHOUT_SOURCE = 1

_KEY = struct.Struct(">B16s16siq")
_VALUE = struct.Struct(">BqqqqqQqqqB")
_HEAD_WITHOUT_SOURCE = struct.Struct(">BqqqqqQq")
_NO_SOURCE = struct.pack(">qq", UNKNOWN, UNKNOWN)
_GAP = struct.Struct(">Bq")
_LENGTH = struct.Struct(">H")

# On disk for ever: only append.
_KINDS = (
    GapKind.ABORTED,
    GapKind.CONTROL,
    GapKind.COMPACTED,
    GapKind.EXPIRED,
    GapKind.FILTERED,
    GapKind.RECREATED,
    GapKind.STRANDED,
    GapKind.SKIPPED,
)
_KIND_CODES = {kind: code for code, kind in enumerate(_KINDS)}


def encode_key(segment: Segment) -> bytes:
    pair = segment.pair
    return _KEY.pack(
        KEY_VERSION, pair.source_topic_id.bytes, pair.target_topic_id.bytes, pair.partition, segment.span_start
    )


def encode_value(entry: JournalEntry) -> bytes:
    segment = entry.segment
    parts = [
        _VALUE.pack(
            VERSION,
            segment.target_start,
            segment.count,
            segment.first_timestamp_ms,
            segment.last_timestamp_ms,
            segment.bytes,
            segment.digest,
            entry.copied_at_ms,
            entry.source_seen_end,
            entry.source_epoch,
            len(segment.gaps),
        )
    ]
    parts.extend(_GAP.pack(_KIND_CODES[kind], offsets) for kind, offsets in segment.gaps.items())
    for text in (entry.flow, entry.run, segment.pair.source_topic, segment.pair.target_topic):
        encoded = text.encode()
        parts += (_LENGTH.pack(len(encoded)), encoded)
    return b"".join(parts)


def encode(entry: JournalEntry) -> tuple[bytes, bytes]:
    """The key and the value that stand for `entry` in the journal."""
    return encode_key(entry.segment), encode_value(entry)


def current(value: bytes) -> bytes:
    """A value of an earlier version as this one writes it; any other is left as it is."""
    at = _HEAD_WITHOUT_SOURCE.size
    if len(value) <= at or value[0] != _WITHOUT_SOURCE:
        return value
    return bytes([VERSION]) + value[1:at] + _NO_SOURCE + value[at:]


def decode(key: bytes, value: bytes, where: str) -> JournalEntry:
    """The entry behind a journal record; `where` (topic, partition, offset) goes into the error if it is none."""
    value = current(value)
    if not key or not value or key[0] != KEY_VERSION or value[0] != VERSION:
        versions = f"{key[:1].hex() or 'none'}/{value[:1].hex() or 'none'}"
        raise JournalFormatError(
            f"{where}: journal entry of version {versions}, this twinlog reads {VERSION:02x}; use a newer twinlog"
        )
    try:
        return _decode(key, value)
    except (struct.error, IndexError, UnicodeDecodeError) as damage:
        raise JournalFormatError(
            f"{where}: damaged journal entry ({damage}); run `twinlog reconcile` on the flow"
        ) from damage


def _decode(key: bytes, value: bytes) -> JournalEntry:
    _, source_id, target_id, partition, span_start = _KEY.unpack(key)
    _, target_start, count, first_ms, last_ms, size, digest, copied_at_ms, *rest = _VALUE.unpack_from(value)
    seen_end, epoch, gap_count = rest
    at = _VALUE.size
    gaps = {}
    for _ in range(gap_count):
        code, offsets = _GAP.unpack_from(value, at)
        gaps[_KINDS[code]] = offsets
        at += _GAP.size
    texts = []
    for _ in range(4):
        (length,) = _LENGTH.unpack_from(value, at)
        at += _LENGTH.size
        text = value[at : at + length]
        if len(text) != length:
            raise IndexError(f"{length} bytes of text expected at {at}, {len(text)} found")
        texts.append(text.decode())
        at += length
    flow, run, source_topic, target_topic = texts
    pair = PartitionPair(source_topic, UUID(bytes=source_id), target_topic, UUID(bytes=target_id), partition)
    source_start = span_start + sum(gaps.values())
    segment = Segment(pair, source_start, target_start, count, first_ms, last_ms, size, digest, gaps)
    return JournalEntry(flow, run, copied_at_ms, segment, seen_end, epoch)
