"""Reads a topic of the target while a run writes to it, and notes when each record became readable.

A record is readable once the last stable offset has passed it, which is asked for every `EVERY_S`; so a time is late by
no more than that and one fetch. The topic need not exist yet. One thread reads, with a client of its own; what goes
wrong in it is raised to whoever waits.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.committed_records import fetch_committed
from twinlog.cluster.log_offsets import OffsetAt, list_offsets
from twinlog.cluster.raw import RawClient
from twinlog.errors import ClusterUnreachableError, TwinlogError
from twinlog.model.canary import Content, Sighting
from twinlog.model.offsets import TopicPartition
from twinlog.wire.reader import records_of
from twinlog.wire.records import Record
from twinlog.wire.source import SourcePartition

EVERY_S = 0.02

Offsets = Mapping[TopicPartition, int]


class TwinReader:
    """A context: it reads from entering to leaving."""

    def __init__(self, access: ClusterAccess, topic: str, starts: Offsets) -> None:
        """Partitions of which no start is given, as all of a topic that does not exist, are read from their first."""
        self._access = access
        self._topic = topic
        self._positions = dict(starts)
        self._seen: list[Sighting] = []
        self._changed = threading.Condition()
        self._failure: TwinlogError | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read, name="twin reader", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def seen(self) -> list[Sighting]:
        """Everything so far, each partition in order."""
        with self._changed:
            return list(self._seen)

    def wait_for(self, condition: Callable[[list[Sighting], Offsets], bool], timeout_s: float) -> bool:
        """Whether the condition on what was seen, and on how far was read, came true in time."""
        with self._changed:
            return self._changed.wait_for(self._holds(condition), timeout_s)

    def _holds(self, condition: Callable[[list[Sighting], Offsets], bool]) -> Callable[[], bool]:
        def holds() -> bool:
            if self._failure is not None:
                raise self._failure
            return condition(self._seen, self._positions)

        return holds

    def _read(self) -> None:
        try:
            with self._access.raw() as client:
                while not self._over.is_set():
                    # A leader that moves is found again, and whoever waits for more has a time-out.
                    with contextlib.suppress(ClusterUnreachableError):
                        client.run(self._look(client))
                    self._over.wait(EVERY_S)
        except TwinlogError as failure:
            with self._changed:
                self._failure = failure
                self._changed.notify_all()

    async def _look(self, client: RawClient) -> None:
        """Take in everything that is readable by now."""
        view = await client.metadata([self._topic])
        partitions = [TopicPartition(self._topic, number) for number in range(len(view.topics[self._topic].partitions))]
        readable = (await list_offsets(client, view, partitions, OffsetAt.LAST_STABLE)).offsets
        for partition, end in readable.items():
            while (at := self._positions.get(partition, 0)) < end:
                batches, after = await fetch_committed(client, view.leader(partition), partition, at)
                source = SourcePartition(client.alias, partition.topic, partition.partition)
                records = [record for batch in batches for record in records_of(batch, source) if record.offset >= at]
                self._take(partition, records, after)

    def _take(self, partition: TopicPartition, records: list[Record], after: int) -> None:
        now_ms = time.time() * 1000
        with self._changed:
            self._seen += [Sighting(partition.partition, _content(record), now_ms) for record in records]
            self._positions[partition] = after
            self._changed.notify_all()


def _content(record: Record) -> Content:
    headers = tuple((header.key.decode(errors="replace"), header.value) for header in record.headers)
    return Content(record.key, record.value, headers, record.timestamp_ms)
