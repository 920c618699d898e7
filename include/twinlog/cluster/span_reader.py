"""Reads a known span of one partition, part by part: every offset of it is a committed record or a counted gap."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from kafka import errors as kafka_errors

from twinlog.cluster.committed_records import committed_batches
from twinlog.cluster.fetch_request import Wanted, fetch_request
from twinlog.cluster.fetched import select_from
from twinlog.cluster.raw import RawClient
from twinlog.errors import ClusterError, ClusterUnreachableError, CorruptBatchError
from twinlog.model.offsets import TopicPartition
from twinlog.wire.reader import records_of
from twinlog.wire.records import Record
from twinlog.wire.selection import Selection
from twinlog.wire.source import SourcePartition

T = TypeVar("T")

FETCH_BYTES = 4 * 1024 * 1024
MAX_WAIT_MS = 200
PATIENCE_S = 30.0
PAUSE_S = 0.1
ANY_SIZE = 2**31 - 1


@dataclass(frozen=True, slots=True)
class SpanReader:
    """One partition, up to where it is to be read."""

    client: RawClient
    partition: TopicPartition
    end: int

    async def batches(self, at: int, max_batch_bytes: int = ANY_SIZE) -> Selection:
        """The next batches from `at` on, ready to be sent to a topic that takes batches of this size."""
        return await self._read(at, lambda answer: select_from(answer, self.place, at, self.end, max_batch_bytes))

    async def records(self, at: int) -> tuple[list[Record], int]:
        """The next committed records from `at` on, and the offset to go on at."""

        def opened(answer: Any) -> tuple[list[Record], int]:
            batches, after = committed_batches(answer, self.place, at)
            found = (record for batch in batches for record in records_of(batch, self.place))
            return [record for record in found if at <= record.offset < self.end], after

        return await self._read(at, opened)

    @property
    def place(self) -> SourcePartition:
        return SourcePartition(self.client.alias, self.partition.topic, self.partition.partition)

    async def _read(self, at: int, taken: Callable[[Any], T]) -> T:
        """What is `taken` of the first answer that brings something; leaders are looked for until patience ends."""
        deadline = time.monotonic() + PATIENCE_S
        problem = "no answer brought anything"
        while time.monotonic() < deadline:
            leader = (await self.client.metadata([self.partition.topic])).leader(self.partition)
            if leader is not None:
                wanted = Wanted(self.partition, at, FETCH_BYTES)
                request = fetch_request([wanted], max_bytes=FETCH_BYTES, max_wait_ms=MAX_WAIT_MS)
                response = await self.client.request(request, leader)
                answers = [answer for topic in response.responses for answer in topic.partitions]
                if answers and not answers[0].error_code and answers[0].records:
                    return taken(answers[0])
                if answers and answers[0].error_code:
                    problem = self._refused(answers[0].error_code)
            await self.client.pause(PAUSE_S)
        raise ClusterUnreachableError(
            f"cluster {self.client.alias}: {self.partition} could not be read from offset {at} to {self.end} within "
            f"{PATIENCE_S:.0f} s: {problem}"
        )

    def _refused(self, code: int) -> str:
        """The name of an error that may pass; any other is raised."""
        kind = kafka_errors.for_code(code)
        if issubclass(kind, kafka_errors.CorruptRecordError):
            raise CorruptBatchError(f"cluster {self.client.alias}: {self.partition} is damaged: {kind.__name__}")
        if not issubclass(kind, kafka_errors.RetriableError):
            raise ClusterError(f"cluster {self.client.alias}: {self.partition} can't be read: {kind.__name__}")
        return str(kind.__name__)
