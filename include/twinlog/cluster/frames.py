"""Answers of a broker, received straight into the memory in which they are read.

    | length | answer | length | answer ...        the stream; an answer may be many megabytes of record batches

kafka-python collects a stream in pieces, joins them, and copies the answer twice more before decoding it. Here the
kernel writes into the frame itself, and decoding sees the frame, not a copy.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Callable

import kafka.errors as kafka_errors
from kafka.protocol.frame import KafkaBytes

from twinlog.cluster.failures import words

_LENGTH = struct.Struct(">i")


class Frame(KafkaBytes):  # type: ignore[misc]
    """One answer. What is left of it is read as a view, which keeps the frame alive and copies nothing."""

    def read(self, nbytes: int | None = None) -> bytes | memoryview:
        end = len(self) if nbytes is None else self._idx + nbytes
        view = memoryview(self)[self._idx : end]
        self._idx += len(view)
        return view if nbytes is None else bytes(view)


class FrameReader:
    """Cuts the stream of one connection into frames; `check_size` refuses a length that no answer has."""

    def __init__(self, check_size: Callable[[int], None]) -> None:
        self._check_size = check_size
        self._length = memoryview(bytearray(_LENGTH.size))
        self._frame: Frame | None = None
        self._missing = self._length

    def receive(self, sock: socket.socket, limit: int | None) -> tuple[list[Frame], Exception | None]:
        """What has arrived whole, up to `limit` bytes or a little more; or the error that ended the stream.

        Never both: a broker that refuses our credentials says so and closes, and whoever is told of the end first would
        not look at the answer before it. A stream that has ended says so again at the next read.
        """
        frames: list[Frame] = []
        size = 0
        ended: Exception | None = None
        while ended is None and (limit is None or size < limit):
            try:
                received = sock.recv_into(self._missing)
            except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            except OSError as error:
                ended = kafka_errors.KafkaConnectionError(words(error))
                ended.__cause__ = error
            else:
                if not received:
                    ended = kafka_errors.KafkaConnectionError("the broker closed the connection")
                size += received
                self._missing = self._missing[received:]
                if not self._missing:
                    frames += self._next()
        return frames, None if size else ended

    def _next(self) -> list[Frame]:
        """Go on to what follows what is now complete; the frame, if it is one that is."""
        if self._frame is not None:
            complete, self._frame, self._missing = [self._frame], None, self._length
            return complete
        (length,) = _LENGTH.unpack(self._length)
        self._check_size(length)
        if length < _LENGTH.size:
            raise kafka_errors.InvalidReceiveError(f"an answer of {length} bytes")
        self._frame = Frame(length)
        self._missing = memoryview(self._frame)
        return []
