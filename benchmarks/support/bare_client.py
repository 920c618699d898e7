"""The least that a Kafka client can do: requests encoded beforehand go out, answers are drained and not looked at.

What a broker and the machine can do with such a client, no client can exceed; it is the yardstick of `limits`.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from typing import Any

from kafka.protocol.frame import KafkaBytes

_LENGTH = struct.Struct(">i")
_CLIENT = "bench"
_BUFFER_BYTES = 1 << 20


def encode(request: Any) -> bytes:
    """A request as it goes over the wire; nobody reads the correlation id of the answer."""
    request.with_header(correlation_id=0, client_id=_CLIENT)
    encoded: bytes = request.encode(framed=True, header=True)
    return encoded


class BareClient:
    """One connection to the one broker of a cluster."""

    def __init__(self, servers: str) -> None:
        host, _, port = servers.partition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))

    def __enter__(self) -> BareClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: Any) -> Any:
        """One request, and its answer decoded."""
        self._socket.sendall(encode(request))
        size = self._length()
        answer = KafkaBytes(size)
        at = 0
        while at < size:
            at += self._receive(memoryview(answer)[at:])
        kind = request.header.get_response_class()
        kind.parse_header(answer)
        return kind.decode(answer)

    def exchange(self, requests: Sequence[bytes], in_flight: int) -> None:
        """Send all, never more than `in_flight` unanswered, and drain the answers."""
        for number, request in enumerate(requests):
            if number >= in_flight:
                self._drain()
            self._socket.sendall(request)
        for _ in range(min(in_flight, len(requests))):
            self._drain()

    def _drain(self) -> None:
        left = self._length()
        while left:
            left -= self._receive(self._buffer[:left])

    def _length(self) -> int:
        head = bytearray(_LENGTH.size)
        at = 0
        while at < len(head):
            at += self._receive(memoryview(head)[at:])
        (size,) = _LENGTH.unpack(head)
        return int(size)

    def _receive(self, into: memoryview) -> int:
        received = self._socket.recv_into(into)
        if not received:
            raise ConnectionError("the broker closed the connection")
        return received
