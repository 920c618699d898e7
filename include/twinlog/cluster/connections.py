"""kafka-python's connection manager, with what distant clusters and large batches need beside it.

- names are looked up off the event loop, and the TLS handshake ends with the time-out as connecting does;
- a socket that could not be connected is closed;
- reads take 64 KiB at a time and writes are not copied, so throughput does not depend on the size of a batch;
- an answer that came just before the connection's end is still read;
- bodies of requests and answers, which hold credentials and data, are never logged, whatever the log level.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
from typing import Any

import kafka.errors as kafka_errors
from kafka.future import Future
from kafka.net.inet import KafkaNetSocket
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

_READ_BYTES = 64 * 1024
_READ_AT_ONCE_BYTES = 8 * 1024 * 1024
"""Bound of one turn on the event loop, so that a fast broker does not starve the others."""

# These loggers print whole requests and answers at DEBUG, and at ERROR an answer that cannot be decoded.
logging.getLogger("kafka.net.connection").setLevel(logging.WARNING)
logging.getLogger("kafka.protocol.parser").setLevel(logging.CRITICAL)


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
        raise kafka_errors.KafkaConnectionError(f"{host}:{port}: {failure}") from failure

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


class _TcpTransport(KafkaTCPTransport):  # type: ignore[misc]
    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        return _receive(self._sock, _READ_AT_ONCE_BYTES)


class _TlsTransport(KafkaSSLTransport):  # type: ignore[misc]
    def write(self, data: bytes) -> None:
        # TLS takes 16 KiB at a time; slicing a view costs nothing, slicing bytes copies the rest each time.
        super().write(memoryview(data))

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        # Without a bound: bytes that OpenSSL holds already would not wake the selector again.
        return _receive(self._sock, None)

    async def handshake_until(self, timeout_at: float | None) -> None:
        while True:
            try:
                self._sock.do_handshake()
            except ssl.SSLWantReadError:
                await self._net.wait_read(self._sock, timeout_at=timeout_at)
            except ssl.SSLWantWriteError:
                await self._net.wait_write(self._sock, timeout_at=timeout_at)
            except OSError as error:
                raise kafka_errors.KafkaConnectionError(f"the TLS handshake failed: {error}") from error
            else:
                return


def _receive(sock: socket.socket, limit: int | None) -> tuple[bytes, Exception | None]:
    """What has arrived, up to `limit`; or, once there is nothing left, the error that ended the stream.

    Never both: a broker that refuses our credentials says so and closes, and whoever is told of the end first would
    not look at the answer before it. A stream that has ended says so again at the next read.
    """
    chunks: list[bytes] = []
    size = 0
    ended: Exception | None = None
    while ended is None and (limit is None or size < limit):
        try:
            chunk = sock.recv(_READ_BYTES)
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            break
        except OSError as error:
            ended = kafka_errors.KafkaConnectionError(str(error))
            ended.__cause__ = error
        else:
            if not chunk:
                ended = kafka_errors.KafkaConnectionError("the broker closed the connection")
            chunks.append(chunk)
            size += len(chunk)
    return b"".join(chunks), None if size else ended


def event_loop() -> NetworkSelector:
    """A loop without kafka-python's watch on slow steps, which would time every step of a copy."""
    return NetworkSelector(slow_task_threshold_secs=0)
