"""The machine's own limit: how fast the same batches can be fetched and produced by a client that does nothing.

Requests are encoded before the clock starts and answers are thrown away (`bare_client`); the requests are as large as
a good copier's, several are in flight, and there is a connection a core. What is left is what brokers, kernel and
loopback take, whoever copies.

How the two become a limit of copying, f and p being the rates of fetching and of producing alone:

- one after the other, a megabyte takes 1/f + 1/p: the rate is 1 / (1/f + 1/p). The same holds for both at once
  if either alone already keeps all cores busy, since then they only share what there is;
- at once with cores to spare the bound is min(f, p), and the truth lies between, depending on what else the two share
  (caches, memory bandwidth, the disk).

So neither formula is trusted alone: `at_once` is measured, fetching and producing the same bytes at the same time
without passing them on, until both have ended. It is the rate of a copier that costs nothing. A real one has to look
at the bytes, check and stamp them, on the same cores, and can come near to it only where cores are left over;
`in_turn` is the formula for one after the other. The share that is printed is of the greater of the two.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass

from benchmarks.support.bare_client import BareClient, encode
from benchmarks.support.loads import Clusters, create_topic, delete_topics
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.producer import ProduceRequest

CONNECTIONS = 2
PARTITION_BYTES = 1 << 20
FETCH_BYTES = 8 << 20
REQUEST_BYTES = 1 << 20
IN_FLIGHT = 4
_FETCH_VERSION = 11
_PRODUCE_VERSION = 8
_LENGTH = struct.Struct(">i")
_HEAD = struct.Struct(">qii")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes a second."""

    fetch: float
    produce: float
    at_once: float

    @property
    def in_turn(self) -> float:
        return 1 / (1 / self.fetch + 1 / self.produce)

    @property
    def copying(self) -> float:
        return max(self.in_turn, self.at_once)

    def mean(self, other: Limits) -> Limits:
        """Of two looks: by the time that a byte takes, as who copies in between would need it."""
        return Limits(
            *(2 / (1 / mine + 1 / theirs) for mine, theirs in zip(astuple(self), astuple(other), strict=True))
        )


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What one connection will send."""

    fetches: list[bytes]
    produces: list[bytes]
    bytes: int


class Looks:
    """Looks at the limits for the first `most_bytes` or so of a source topic, as often as one likes.

    As many bytes as a case has, so that what the system only takes in at first, to write it to the disk later, flatters
    a short look no more than a long copy. The requests are made once, for all looks.
    """

    def __init__(self, clusters: Clusters, topic: str, partitions: int, most_bytes: int) -> None:
        self._clusters = clusters
        self._partitions = partitions
        self._scratch = [f"limit-{name}-{topic}" for name in ("produce", "at-once")]
        shares = [range(number, partitions, CONNECTIONS) for number in range(CONNECTIONS)]
        self._alone, self._together = (
            [_prepare(clusters.source, topic, share, name, most_bytes // CONNECTIONS) for share in shares]
            for name in self._scratch
        )

    def look(self) -> Limits:
        source, target = self._clusters
        for name in self._scratch:
            create_topic(target, name, self._partitions)
        size = sum(one.bytes for one in self._alone)
        fetching = [_exchange(source, one.fetches, 2) for one in self._alone]
        producing = [_exchange(target, one.produces, IN_FLIGHT) for one in self._alone]
        both = [_exchange(source, one.fetches, 2) for one in self._together]
        both += [_exchange(target, one.produces, IN_FLIGHT) for one in self._together]
        found = Limits(*(size / _timed(work) for work in (fetching, producing, both)))
        delete_topics(target, *self._scratch)
        return found


def _exchange(servers: str, requests: Sequence[bytes], in_flight: int) -> Callable[[], None]:
    def work() -> None:
        with BareClient(servers) as client:
            client.exchange(requests, in_flight)

    return work


def _timed(works: Sequence[Callable[[], None]]) -> float:
    """How long all take, at the same time; an error of one is raised."""
    with ThreadPoolExecutor(len(works)) as pool:
        began = time.perf_counter()
        for future in [pool.submit(work) for work in works]:
            future.result()
        return time.perf_counter() - began


def _prepare(source: str, topic: str, partitions: Sequence[int], scratch: str, most_bytes: int) -> _Prepared:
    """Read the log once, remember what to ask for, and make Produce requests of what came."""
    at = dict.fromkeys(partitions, 0)
    fetches, batches, size = [], {number: [] for number in partitions}, 0
    with BareClient(source) as client:
        while size < most_bytes:
            request = _fetch(topic, at)
            answer = client.ask(request)
            came = 0
            for one in answer.responses[0].partitions:
                for batch in _cut(one.records or b""):
                    batches[one.partition_index].append(_as_new(batch))
                    at[one.partition_index] += int.from_bytes(batch[57:61], "big")
                    came += len(batch)
            if not came:
                break
            size += came
            fetches.append(encode(request))
            # The broker fills its answer in the order of the request: let those that had nothing go first.
            at = dict(sorted(at.items(), key=lambda item: item[1]))
    return _Prepared(fetches, list(_produces(scratch, batches)), size)


def _fetch(topic: str, at: dict[int, int]) -> FetchRequest:
    asked = FetchRequest.FetchTopic
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=FETCH_BYTES,
        isolation_level=1,
        session_id=0,
        session_epoch=-1,
        topics=[
            asked(
                topic=topic,
                partitions=[
                    asked.FetchPartition(
                        partition=number,
                        current_leader_epoch=-1,
                        fetch_offset=offset,
                        log_start_offset=-1,
                        partition_max_bytes=PARTITION_BYTES,
                        version=_FETCH_VERSION,
                    )
                    for number, offset in at.items()
                ],
                version=_FETCH_VERSION,
            )
        ],
        forgotten_topics_data=[],
        rack_id="",
        version=_FETCH_VERSION,
    )


def _cut(records: bytes) -> Iterable[bytes]:
    """The whole batches."""
    at = 0
    while at + 12 <= len(records):
        end = at + 12 + _LENGTH.unpack_from(records, at + 8)[0]
        if end > len(records):
            return
        yield records[at:end]
        at = end


def _as_new(batch: bytes) -> bytes:
    """As its producer sent it: base offset and leader epoch are the broker's to give, and outside the checksum."""
    return _HEAD.pack(0, len(batch) - 12, -1) + batch[_HEAD.size :]


def _produces(topic: str, batches: dict[int, list[bytes]]) -> Iterable[bytes]:
    """One batch a partition in each request, as many partitions as fit."""
    written = ProduceRequest.TopicProduceData
    for place in range(max(map(len, batches.values()), default=0)):
        layer = [(number, found[place]) for number, found in batches.items() if place < len(found)]
        while layer:
            chosen, size = [], 0
            while layer and size < REQUEST_BYTES:
                number, batch = layer.pop(0)
                size += len(batch)
                chosen.append(written.PartitionProduceData(index=number, records=batch, version=_PRODUCE_VERSION))
            yield encode(
                ProduceRequest(
                    transactional_id=None,
                    acks=-1,
                    timeout_ms=30_000,
                    topic_data=[written(name=topic, partition_data=chosen, version=_PRODUCE_VERSION)],
                    version=_PRODUCE_VERSION,
                )
            )
