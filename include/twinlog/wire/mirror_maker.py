"""MirrorMaker 2's own records as bytes, as Kafka 4.3 writes them, so that tools made for it can read ours.

    record       key                         value
    heartbeat    source alias, target alias  version, timestamp
    checkpoint   group, topic, partition     version, upstream offset, downstream offset, metadata
    offset sync  topic, partition            upstream offset, downstream offset

Integers are big endian; a text is its length in UTF-8 bytes as 16 bits, then the bytes. The version is 0 and any other
is refused; an offset sync has none. Bytes after the last field are passed over, as MirrorMaker 2 itself does. There
some of our checkpoints say which offsets on the target are ours, see `twinlog.model.checkpoints`: a mark of four bytes,
their number as 16 bits, the offsets. One that says nothing, as MirrorMaker 2's do, means its own downstream offset.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Self

from twinlog.errors import MirrorMakerFormatError
from twinlog.model.offsets import TopicPartition

VERSION = 0
MOST_TEXT_BYTES = 2**15 - 1
OURS = b"\xffTWL"
"""Begins what we add to a checkpoint."""

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_OFFSETS = struct.Struct(">qq")


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A sign of life of one flow, made on the source at `timestamp_ms` and mirrored like any record."""

    source: str
    target: str
    timestamp_ms: int

    def key(self) -> bytes:
        return _text(self.source) + _text(self.target)

    def value(self) -> bytes:
        return _INT16.pack(VERSION) + _INT64.pack(self.timestamp_ms)

    @classmethod
    def decode(cls, key: bytes, value: bytes, where: str) -> Self:
        """The heartbeat behind a record; `where` (topic, partition, offset) goes into the error if it is none."""
        keys, values = _Fields(key, where), _Fields(value, where)
        source, target = keys.text(), keys.text()
        values.version()
        return cls(source, target, values.int64())


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A group's position on one partition: as committed on the source, and what that means on the target."""

    group: str
    target: TopicPartition
    """Named as on the target."""
    upstream_offset: int
    downstream_offset: int
    metadata: str = ""
    ours: frozenset[int] | None = None
    """The offsets on the target that are ours; None where that is the downstream offset and no other."""

    def key(self) -> bytes:
        return _text(self.group) + _partition(self.target)

    def value(self) -> bytes:
        offsets = _OFFSETS.pack(self.upstream_offset, self.downstream_offset)
        added = b""
        if self.ours is not None:
            added = OURS + _INT16.pack(len(self.ours)) + b"".join(map(_INT64.pack, sorted(self.ours)))
        return _INT16.pack(VERSION) + offsets + _text(self.metadata) + added

    @classmethod
    def decode(cls, key: bytes, value: bytes, where: str) -> Self:
        """The checkpoint behind a record; `where` (topic, partition, offset) goes into the error if it is none."""
        keys, values = _Fields(key, where), _Fields(value, where)
        group, target = keys.text(), keys.partition()
        values.version()
        return cls(group, target, values.int64(), values.int64(), values.text(), values.ours())


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """A record of the source and the same record's offset on the target."""

    source: TopicPartition
    """Named as on the source."""
    upstream_offset: int
    downstream_offset: int

    def key(self) -> bytes:
        return _partition(self.source)

    def value(self) -> bytes:
        return _OFFSETS.pack(self.upstream_offset, self.downstream_offset)

    @classmethod
    def decode(cls, key: bytes, value: bytes, where: str) -> Self:
        """The offset sync behind a record; `where` (topic, partition, offset) goes into the error if it is none."""
        keys, values = _Fields(key, where), _Fields(value, where)
        return cls(keys.partition(), values.int64(), values.int64())


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _INT16.pack(len(encoded)) + encoded


def _partition(partition: TopicPartition) -> bytes:
    return _text(partition.topic) + _INT32.pack(partition.partition)


class _Fields:
    """The fields of a key or a value, one after the other."""

    def __init__(self, data: bytes, where: str) -> None:
        self._data = data
        self._at = 0
        self._where = where

    def version(self) -> None:
        version = self._integer(_INT16)
        if version != VERSION:
            raise MirrorMakerFormatError(
                f"{self._where}: MirrorMaker 2 record of version {version}, this twinlog reads {VERSION}; "
                "use a newer twinlog"
            )

    def int64(self) -> int:
        return self._integer(_INT64)

    def text(self) -> str:
        length = self._integer(_INT16)
        try:
            return self._take(length).decode()
        except UnicodeDecodeError as damage:
            raise self._damaged(str(damage)) from damage

    def partition(self) -> TopicPartition:
        return TopicPartition(self.text(), self._integer(_INT32))

    def ours(self) -> frozenset[int] | None:
        if not self._data.startswith(OURS, self._at):
            return None
        self._at += len(OURS)
        return frozenset(self.int64() for _ in range(self._integer(_INT16)))

    def _integer(self, form: struct.Struct) -> int:
        (number,) = form.unpack(self._take(form.size))
        return int(number)

    def _take(self, length: int) -> bytes:
        taken = self._data[self._at : self._at + max(length, 0)]
        if len(taken) != length:
            raise self._damaged(f"{length} bytes expected at {self._at}, {len(taken)} found")
        self._at += length
        return taken

    def _damaged(self, how: str) -> MirrorMakerFormatError:
        return MirrorMakerFormatError(f"{self._where}: not a record of MirrorMaker 2 ({how})")
