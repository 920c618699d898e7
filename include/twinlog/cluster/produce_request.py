"""A Produce request that copies the batches once, from where they were received into what is sent.

kafka-python's own would copy each batch three times and make half a dozen objects for it. To the connection this is a
request like any other; the answer is decoded by the library. Written as version 11, the last before KIP-890:

    request   transactional id, acks, time-out, topics*
    topic     name, partitions*
    partition index, records                   strings, arrays and records are preceded by their length + 1
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from kafka.protocol.api_header import RequestHeader
from kafka.protocol.producer import ProduceRequest

from twinlog.model.offsets import TopicPartition

VERSION = 11
ALL_IN_SYNC = -1

Pieces = Sequence[bytes | memoryview]
"""One batch, in pieces that follow each other."""

_FRAME = struct.Struct(">i")
_HEADER = struct.Struct(">hhih")
_ACKS_AND_TIMEOUT = struct.Struct(">hi")
_INDEX = struct.Struct(">i")
_NO_TAGS = b"\0"
_NO_TEXT = b"\0"


class ProduceBatches:
    """One batch for each of some partitions, all led by the broker it is sent to."""

    name = ProduceRequest.name
    API_VERSION = VERSION

    def __init__(self, transactional_id: str | None, timeout_ms: int, batches: Mapping[TopicPartition, Pieces]) -> None:
        """With no transactional id the batches belong to no transaction."""
        self._parts = list(_body(transactional_id, timeout_ms, batches))
        self.header: RequestHeader | None = None

    def expect_response(self) -> bool:
        return True

    def with_header(self, correlation_id: int, client_id: str) -> None:
        self.header = RequestHeader(
            request_api_key=ProduceRequest.API_KEY,
            request_api_version=VERSION,
            correlation_id=correlation_id,
            client_id=client_id,
        )
        client = client_id.encode()
        head = _HEADER.pack(ProduceRequest.API_KEY, VERSION, correlation_id, len(client)) + client + _NO_TAGS
        self._parts.insert(0, head)

    def encode(self, *, framed: bool, header: bool) -> bytes:
        """The bytes to send; the connection asks once, with a header and framed."""
        if not (framed and header and self.header is not None):
            raise ValueError("a request is sent with its header and its length")
        return b"".join([_FRAME.pack(sum(map(len, self._parts))), *self._parts])


def _body(
    transactional_id: str | None, timeout_ms: int, batches: Mapping[TopicPartition, Pieces]
) -> Iterable[bytes | memoryview]:
    topics = [(topic, list(members)) for topic, members in groupby(sorted(batches), key=lambda each: each.topic)]
    yield _NO_TEXT if transactional_id is None else _text(transactional_id)
    yield _ACKS_AND_TIMEOUT.pack(ALL_IN_SYNC, timeout_ms)
    yield _length(len(topics))
    for topic, members in topics:
        yield _text(topic) + _length(len(members))
        for partition in members:
            pieces = batches[partition]
            yield _INDEX.pack(partition.partition) + _length(sum(map(len, pieces)))
            yield from pieces
            yield _NO_TAGS
        yield _NO_TAGS
    yield _NO_TAGS


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _length(len(encoded)) + encoded


def _length(count: int) -> bytes:
    """As compact types have it: one more than the count, seven bits a byte, the lowest first."""
    rest = count + 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)
