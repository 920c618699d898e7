"""Rounds of Fetch requests over a journal: in each, every leader is asked once for all that is left to read there.

What always holds:
- a partition's records come once, in the order of their offsets, and all of them: an offset that is gone is an error,
  except for 0, which means wherever the log begins;
- only committed records come; markers and aborted ones are passed over, and nothing at or after an end is looked at;
- a topic made anew under the journal's name is an error, and never read as the journal;
- a round in which nothing can be read takes as long as a broker waits for records, so rounds may follow each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

import kafka.errors as kafka_errors
from kafka.protocol.consumer import FetchRequest

from twinlog.cluster.committed_records import FETCH_BYTES, MAX_WAIT_MS, committed_batches
from twinlog.cluster.fetch_errors import check_fetched, is_gone, is_passing
from twinlog.cluster.fetch_request import BY_ID_VERSION, BY_NAME_VERSION, Wanted, fetch_request
from twinlog.cluster.log_offsets import OffsetAt, list_offsets
from twinlog.cluster.refusals import demand, refusal
from twinlog.errors import ClusterUnreachableError, JournalReplacedError
from twinlog.ledger.journal import Journal
from twinlog.model.offsets import Span, TopicPartition
from twinlog.wire.reader import records_of
from twinlog.wire.records import Record
from twinlog.wire.source import SourcePartition

PAUSE_S = 0.1


class Arrived(NamedTuple):
    """Records of one partition, in order."""

    partition: int
    records: list[Record]


@dataclass(slots=True)
class _Reading:
    """How far one partition has been read."""

    partition: TopicPartition
    at: int
    end: int
    leader: int | None = None


class JournalFetch:
    """The spans of a journal that are left to read."""

    def __init__(self, journal: Journal, spans: Mapping[int, Span]) -> None:
        self._journal = journal
        self._client = journal.client
        by_id = journal.client.api_version(FetchRequest) >= BY_ID_VERSION
        self._version = BY_ID_VERSION if by_id else BY_NAME_VERSION
        self._readings = {
            number: _Reading(TopicPartition(journal.topic, number), span.start, span.end)
            for number, span in spans.items()
        }
        self.trouble = ""
        """What kept the last round from asking for every partition, in words."""

    def unread(self) -> list[int]:
        """The partitions whose ends are not reached."""
        return sorted(number for number, one in self._readings.items() if one.at < one.end)

    def progress(self) -> int:
        """Rises whenever something was read or passed over."""
        return sum(one.at for one in self._readings.values())

    async def round(self) -> list[Arrived]:
        """Ask every leader once; nothing comes of partitions that an open transaction holds back."""
        self.trouble = ""
        await self._find_leaders()
        by_leader: dict[int, list[_Reading]] = {}
        for number in self.unread():
            one = self._readings[number]
            if one.leader is not None:
                by_leader.setdefault(one.leader, []).append(one)
        answers = await self._client.gather(self._ask(leader, wanted) for leader, wanted in by_leader.items())
        arrived = [some for answer in answers for some in self._accept(answer)]
        await self._skip_to_log_starts(answers)
        if self.trouble:
            # The cluster needs a moment to agree on who leads, and would be asked without end meanwhile.
            await self._client.pause(PAUSE_S)
        return arrived

    async def _find_leaders(self) -> None:
        homeless = [self._readings[number] for number in self.unread() if self._readings[number].leader is None]
        if not homeless:
            return
        journal = self._journal
        view = await self._client.metadata([journal.topic])
        topic = view.topics[journal.topic]
        if topic.topic_id is not None and str(topic.topic_id) != journal.topic_id:
            raise JournalReplacedError(
                f"cluster {self._client.alias}: {journal.topic} has the id {topic.topic_id} and had {journal.topic_id} "
                "when reading began: the topic was made anew; run `twinlog ledger rebuild`"
            )
        for one in homeless:
            one.leader = view.leader(one.partition)
            if one.leader is None:
                self.trouble = f"{one.partition} has no leader ({topic.error or 'the cluster is choosing one'})"

    async def _ask(self, leader: int, wanted: list[_Reading]) -> list[Any]:
        """The answers for these partitions; none where the broker can't be reached, or holds us back by a quota."""
        topic_id = UUID(self._journal.topic_id)
        request = fetch_request(
            [Wanted(one.partition, one.at, FETCH_BYTES, topic_id) for one in wanted],
            max_bytes=FETCH_BYTES,
            max_wait_ms=MAX_WAIT_MS,
            version=self._version,
        )
        try:
            response = await self._client.request(request, leader)
            check_fetched(self._client.alias, response)
        except ClusterUnreachableError as unreachable:
            # The broker may be restarting: the others know who leads then.
            self.trouble = str(unreachable)
            for one in wanted:
                one.leader = None
            return []
        return [answer for topic in response.responses for answer in topic.partitions]

    def _accept(self, answers: list[Any]) -> Iterator[Arrived]:
        nothing_came = not any(answer.records for answer in answers)
        for answer in answers:
            one = self._readings[answer.partition_index]
            if answer.error_code:
                self._refused(one, answer.error_code)
            elif answer.records:
                yield self._open(one, answer)
            elif nothing_came and answer.last_stable_offset >= one.end:
                # The log cleaner has emptied what is left. Beside others' records it could be for want of room.
                one.at = one.end

    def _open(self, one: _Reading, answer: Any) -> Arrived:
        source = SourcePartition(self._client.alias, one.partition.topic, one.partition.partition)
        batches, after = committed_batches(answer, source, one.at)
        at, end = one.at, one.end
        records = [record for batch in batches for record in records_of(batch, source) if at <= record.offset < end]
        one.at = after
        return Arrived(one.partition.partition, records)

    def _refused(self, one: _Reading, code: int) -> None:
        """Note what time may mend, or raise; an offset that is gone is looked into afterwards."""
        if is_passing(code) or is_gone(code):
            one.leader = None
            self.trouble = f"{one.partition} can't be read now: {kafka_errors.for_code(code).__name__}"
        elif code != kafka_errors.OffsetOutOfRangeError.errno:
            refused = refusal(code, None)
            demand(
                self._client.alias,
                self._journal.principal,
                "READ",
                {f"topic {one.partition.topic}": refused} if refused else {},
                "the ledger can't be brought up to date",
            )

    async def _skip_to_log_starts(self, answers: list[list[Any]]) -> None:
        out_of_range = [
            self._readings[answer.partition_index]
            for some in answers
            for answer in some
            if answer.error_code == kafka_errors.OffsetOutOfRangeError.errno
        ]
        if not out_of_range:
            return
        view = await self._client.metadata([self._journal.topic])
        listing = await list_offsets(self._client, view, [one.partition for one in out_of_range], OffsetAt.LOG_START)
        for one in out_of_range:
            start = listing.offsets.get(one.partition)
            if start is None:
                self.trouble = f"{one.partition}'s log start isn't known: {listing.failed[one.partition]}"
            elif one.at == 0:
                one.at = start
            else:
                raise JournalReplacedError(
                    f"cluster {self._client.alias}: {one.partition} has no offset {one.at}, where reading goes on, and "
                    f"starts at {start}: the journal lost entries that the ledger may not have; `twinlog ledger "
                    "rebuild` makes one of what the journal still holds"
                )
