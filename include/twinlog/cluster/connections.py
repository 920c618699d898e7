"""kafka-python's connection manager, with what distant clusters and large batches need beside it.

- names are looked up off the event loop, and the TLS handshake ends with the time-out as connecting does;
- a socket that could not be connected is closed;
- neither reads nor writes are copied on their way, so throughput does not depend on the size of a batch;
- an answer that came just before the connection's end is still read;
- the library logs nothing: each failure reaches us as an exception, and its lines, some of which hold whole requests
  and answers with credentials and data, would bury ours.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading
import time
from typing import Any

import kafka.errors as kafka_errors
from kafka.future import Future
from kafka.net.connection import KafkaConnection
from kafka.net.inet import KafkaNetSocket
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

from twinlog.cluster.failures import words
from twinlog.cluster.frames import Frame, FrameReader

_NOTHING = logging.CRITICAL + 1
_LIBRARY_LOG = logging.getLogger("kafka")
_LIBRARY_LOG.setLevel(_NOTHING)
# Nor from a logger below it that somebody gives a level of its own.
_LIBRARY_LOG.propagate = False
# These print whole requests and answers at DEBUG, and at ERROR an answer that cannot be decoded.
for _name in ("kafka.net.connection", "kafka.protocol.parser"):
    logging.getLogger(_name).setLevel(_NOTHING)


class Connections(KafkaConnectionManager):  # type: ignore[misc]
    """Connections to the brokers of one cluster; their addresses come with metadata applied to it."""

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> KafkaTCPTransport:
        sock = await self._connect_socket(node.host, node.port, timeout_at)
        if not self.ssl_enabled:
            return _TcpTransport(self._net, sock, host=node.host)
        # From here on the transport owns the socket, and closing the one closes the other.
        transport = _TlsTransport(self._net, sock, host=node.host, ssl_context=self.config["ssl_context"])
        try:
            await transport.handshake_until(timeout_at)
        except BaseException:
            transport.abort()
            raise
        return transport

    async def _connect_socket(self, host: str, port: int, timeout_at: float | None) -> socket.socket:
        failure: Exception | None = None
        for family, kind, protocol, _, address in await self._look_up(host, port, timeout_at):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.setblocking(False)
                for option in self.config["socket_options"]:
                    sock.setsockopt(*option)
                return await KafkaNetSocket().sock_connect(self._net, sock, address, timeout_at=timeout_at)  # type: ignore[no-any-return]
            except (OSError, kafka_errors.KafkaError) as error:
                sock.close()
                failure = error
            except BaseException:
                sock.close()
                raise
        reason = "the name has no address" if failure is None else words(failure)
        raise kafka_errors.KafkaConnectionError(f"{host}:{port}: {reason}") from failure

    async def _look_up(self, host: str, port: int, timeout_at: float | None) -> list[Any]:
        """The addresses of a name; the system's resolver may block for longer than any time-out of ours."""
        answer = Future()

        def look_up() -> None:
            try:
                found: list[Any] | OSError = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            except OSError as error:
                found = error
            self._deliver(answer, found)

        threading.Thread(target=look_up, name=f"look up {host}", daemon=True).start()
        remaining_ms = None if timeout_at is None else max(0.0, timeout_at - time.monotonic()) * 1000
        found = await self.wait_for(answer, remaining_ms)
        if isinstance(found, OSError):
            raise kafka_errors.KafkaConnectionError(f"the name {host} is not known: {found.strerror}")
        return list(found)

    def _deliver(self, answer: Future, value: object) -> None:
        try:
            self._net.call_soon_threadsafe(lambda: answer.success(value))
        except RuntimeError:
            return  # the loop was closed while the resolver was still busy; nobody waits for the answer


class _FramedReading(KafkaTCPTransport):  # type: ignore[misc]
    """Reads whole answers, without the copies that the library makes of them (see `frames`)."""

    _at_once_bytes: int | None

    async def _read_from_sock(self) -> None:
        frames = FrameReader(self._protocol.parser._validate_frame_size)
        while self._read and not self._closed:
            await self._net.wait_read(self._sock)
            try:
                received, ended = frames.receive(self._sock, self._at_once_bytes)
                if ended is not None:
                    self.abort(error=ended)
                    return
                self.last_read = time.monotonic()
                for frame in received:
                    _hand_over(frame, self._protocol)
            except kafka_errors.KafkaProtocolError as error:
                self.abort(error=error)
                return


def _hand_over(frame: Frame, connection: KafkaConnection | None) -> None:
    """Give the connection an answer, as if all but its last byte had come before: it takes it from there."""
    if connection is None or connection.closed:  # an answer before this one ended it
        return
    connection.parser._receiving, connection.parser._rbuffer = True, frame
    frame.seek(len(frame) - 1)
    connection.data_received(bytes(frame[-1:]))


class _TcpTransport(_FramedReading):
    # So that a fast broker does not starve the others on the event loop.
    _at_once_bytes = 8 * 1024 * 1024

    def write(self, data: bytes) -> None:
        """Send what the system takes right now; only the rest waits for the event loop to find the socket writable."""
        if self._writing or not self._write or self._closed:
            super().write(data)
            return
        unsent = memoryview(data)
        # Full or broken: whoever writes the rest is told which.
        with contextlib.suppress(OSError):
            unsent = unsent[self._sock.send(unsent) :]
        if unsent:
            super().write(unsent)
        else:
            self.last_write = time.monotonic()


class _TlsTransport(_FramedReading, KafkaSSLTransport):  # type: ignore[misc]
    # Without a bound: bytes that OpenSSL holds already would not wake the selector again.
    _at_once_bytes = None

    def write(self, data: bytes) -> None:
        # TLS takes 16 KiB at a time; slicing a view costs nothing, slicing bytes copies the rest each time.
        super().write(memoryview(data))

    async def handshake_until(self, timeout_at: float | None) -> None:
        while True:
            try:
                self._sock.do_handshake()
            except ssl.SSLWantReadError:
                await self._net.wait_read(self._sock, timeout_at=timeout_at)
            except ssl.SSLWantWriteError:
                await self._net.wait_write(self._sock, timeout_at=timeout_at)
            except OSError as error:
                raise kafka_errors.KafkaConnectionError(f"the TLS handshake failed: {words(error)}") from error
            else:
                return


def event_loop() -> NetworkSelector:
    """A loop without kafka-python's watch on slow steps, which would time every step of a copy."""
    return NetworkSelector(slow_task_threshold_secs=0)
