"""The raw protocol to one cluster: requests go out and answers come back, many at once on one event loop.

Always true here:
- connecting and every request end within their time-out, whatever the other side does;
- credentials that are not accepted are an AuthenticationError at once, a broker that does not answer is a
  ClusterUnreachableError; both name the cluster;
- one thread drives the loop: the one inside `run`. Coroutines need no locks.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Coroutine, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

import kafka.errors as kafka_errors
from kafka.future import Future
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import CoordinatorType, MetadataRequest

from twinlog.cluster.connections import Connections, event_loop
from twinlog.cluster.coordinators import find_coordinators
from twinlog.cluster.failures import Failures, words
from twinlog.cluster.metadata import Broker, ClusterMetadata, read_metadata
from twinlog.cluster.turns import Turns
from twinlog.errors import AuthenticationError, ConfigurationError

T = TypeVar("T")


class RawClient:
    """Requests to the brokers of one cluster; `config` is that of kafka-python's connection manager."""

    def __init__(
        self,
        alias: str,
        config: Mapping[str, Any],
        beside: RawClient | None = None,
        principal: str = "the principal of this client",
    ) -> None:
        """A client `beside` another shares that one's loop, so that one coroutine can talk to both clusters.

        `principal` is who the cluster takes us for, as far as our own settings tell.
        """
        self.alias = alias
        self.principal = principal
        self.failures = Failures(alias, str(config["bootstrap_servers"]))
        self._request_timeout_s = float(config.get("request_timeout_ms", 30_000)) / 1000
        self._coordinators: dict[tuple[CoordinatorType, str], int] = {}
        self._turns: dict[int, Turns] = {}
        """Of those who wait for a broker's quota to pass, by broker."""
        self._owns_loop = beside is None
        self._net: NetworkSelector = event_loop() if beside is None else beside._net
        try:
            self._connections = Connections(self._net, **config)
        except ValueError as error:
            self._close_loop()
            raise ConfigurationError(f"cluster {alias}: bootstrap.servers cannot be used: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def connect(self, timeout_s: float) -> Self:
        """Reach one of the bootstrap servers and learn the brokers' addresses from it."""
        self.run(self._bootstrap(time.monotonic() + timeout_s))
        return self

    def close(self) -> None:
        self._connections.close()
        self._close_loop()

    def _close_loop(self) -> None:
        if self._owns_loop:
            self._net.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Drive the loop until `work` is done, and return what it returned."""
        result: T = self._net.run(work)
        return result

    def send(self, request: Any, node_id: int | None = None, timeout_s: float | None = None) -> Any:
        """One request and its answer, for callers that are no coroutine."""
        return self.run(self.request(request, node_id, timeout_s))

    async def request(self, request: Any, node_id: int | None = None, timeout_s: float | None = None) -> Any:
        """The answer of a broker, any where none is named; a refused connection is an error, not a retry."""
        deadline = time.monotonic() + (self._request_timeout_s if timeout_s is None else timeout_s)
        try:
            connection = await self._connection(node_id, deadline)
            return await connection.send_request(request, request_timeout_ms=_left_ms(deadline))
        except kafka_errors.KafkaError as error:
            raise self.failures.of_raw(error) from error

    async def metadata(
        self, topics: Iterable[str] | None = None, timeout_s: float | None = None, node_id: int | None = None
    ) -> ClusterMetadata:
        """Brokers, and the topics that are named (None: all of them), in one request that creates nothing."""
        wanted = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics]
        response = await self.request(_metadata_request(wanted), node_id, timeout_s)
        return self._apply(response)

    def brokers(self) -> list[Broker]:
        """The brokers of the last metadata."""
        known = self._connections.cluster.brokers()
        return [Broker(broker.node_id, broker.host, broker.port, broker.rack) for broker in known]

    def controller(self) -> int | None:
        """The broker to send changes to: the controller, or where brokers pass them on to it, any of them."""
        known = self._connections.cluster.controller
        return None if known is None else int(known.node_id)

    def api_version(self, request_type: Any) -> int:
        """The highest version of a request that both the cluster and this library know."""
        version: int = self._connections.broker_version_data.api_version(request_type)
        return version

    def spawn(self, work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        """Start `work` beside the caller; await what is returned for its result."""
        future: Awaitable[T] = self._connections.call_soon(work)
        return future

    async def gather(self, works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        """Run all at once; the first error is raised after every one of them has ended."""
        futures: list[Future] = [self._connections.call_soon(work) for work in works]
        for future in futures:
            if not future.is_done:
                await _ended(future)
        return [await future for future in futures]

    async def coordinator(self, kind: CoordinatorType, key: str, *, refresh: bool = False) -> int:
        """The broker that keeps a group's positions or a transactional id's state; remembered until `refresh`."""
        known = None if refresh else self._coordinators.get((kind, key))
        if known is None:
            known = (await find_coordinators(self, kind, [key]))[key]
            self._coordinators[kind, key] = known
        return known

    async def pause(self, seconds: float) -> None:
        """Let other coroutines run for so long."""
        await self._net.sleep(seconds)

    async def _bootstrap(self, deadline: float) -> None:
        servers = self._connections.cluster.bootstrap_brokers()
        random.shuffle(servers)
        reasons: list[str] = []
        for tried, server in enumerate(servers):
            share_s = max(0.0, deadline - time.monotonic()) / (len(servers) - tried)
            try:
                await self._learn_brokers(server.node_id, share_s)
            except kafka_errors.KafkaError as error:
                failure = self.failures.of_raw(error)
                if isinstance(failure, AuthenticationError):
                    raise failure from error
                where = f"{server.host}:{server.port}: "
                reasons.append(where + words(error).removeprefix(where))
            else:
                return
        raise self.failures.unreachable("; ".join(sorted(set(reasons))))

    async def _learn_brokers(self, node_id: str, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        connection = self._connections.get_connection(
            node_id, timeout_ms=timeout_s * 1000, refresh_metadata_on_err=False
        )
        try:
            await self._connections.wait_for(connection.init_future, _left_ms(deadline))
            response = await connection.send_request(_metadata_request([]), request_timeout_ms=_left_ms(deadline))
        finally:
            connection.close()
        self._apply(response)

    async def _connection(self, node_id: int | None, deadline: float) -> Any:
        """An open connection that takes requests now."""
        if node_id is None:
            node_id = self._connections.least_loaded_node()
            if node_id is None:
                raise kafka_errors.NodeNotReadyError("no broker takes connections at the moment")
        await self._wait(self._connections.connection_delay(node_id), deadline)
        connection = self._connections.get_connection(node_id, refresh_metadata_on_err=False)
        if not connection.connected:
            await self._connections.wait_for(connection.init_future, _left_ms(deadline))
        turns = self._turns.setdefault(node_id, Turns())
        if connection.paused or turns.taken:
            await turns.take()
            try:
                while connection.paused:
                    # Only a broker's quota pauses a connection here; it says for how long.
                    await self._wait(max(connection._throttle_time - time.monotonic(), 0.001), deadline)
            finally:
                # Whoever is next runs after we have sent: from here on nothing is waited for before that.
                turns.give()
        return connection

    async def _wait(self, seconds: float, deadline: float) -> None:
        if seconds <= 0:
            return
        if time.monotonic() + seconds >= deadline:
            raise kafka_errors.KafkaTimeoutError("the broker is not ready before the time-out")
        await self._net.sleep(seconds)

    def _apply(self, response: Any) -> ClusterMetadata:
        metadata = read_metadata(response)
        if not metadata.brokers:
            # As a broker does that the controller has given up for a moment, and that has no others beside it.
            raise self.failures.unreachable("it names no broker that is alive")
        response.topics = []  # the manager needs addresses only; leaders are ours to keep
        self._connections.cluster.update_metadata(response)
        return metadata


def _metadata_request(topics: list[Any] | None) -> MetadataRequest:
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def _left_ms(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic()) * 1000


async def _ended(future: Future) -> None:
    """Wait for a future without taking its result or its error."""
    done = Future()
    future.add_both(lambda _: done.success(None))
    await done
