"""Reads a journal from a mark to given ends, read_committed, in chunks.

It ends only when every partition has been read to its end, which an open transaction below it delays until
that transaction is decided: this wait is the third step of the barrier. No group is used and nothing is
committed; how far one has read is the ledger's mark.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from twinlog.errors import JournalReadError, JournalReplacedError, JournalUnstableError
from twinlog.ledger.chain import Mark
from twinlog.ledger.columns import RawEntry

CHUNK_ENTRIES = 100_000
Removal = Callable[[int, bytes], object]
"""Told the partition and the key of an entry that was removed."""

_BATCH = 10_000
_POLL_S = 0.02
"""Short, because a read for many messages waits for all of it once the last have come."""


def read(
    settings: Mapping[str, Any],
    topic: str,
    mark: Mark,
    ends: Mapping[int, int],
    *,
    idle_timeout_s: float = 120,
    removed: Removal = lambda _partition, _key: None,
) -> Iterator[list[RawEntry]]:
    """The committed entries of `topic` in `[mark, ends)`, at most CHUNK_ENTRIES at a time, in partition
    order.

    `settings` are the target's Kafka client properties. A record with no value is no entry but says that an earlier one
    was removed, of which `removed` is told; until the log cleaner has run, that one is there to be read yet. Raises
    JournalUnstableError if for `idle_timeout_s` there was nothing to read and an end was still not reached.
    """
    pending = _spans(topic, mark, ends)
    if not pending:
        return
    consumer = Consumer(
        {
            "fetch.wait.max.ms": 100,
            **settings,
            "group.id": "twinlog.journal-reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            # A reader that silently starts elsewhere would leave a hole in the ledger.
            "auto.offset.reset": "error",
        }
    )
    try:
        consumer.assign(
            # From the beginning means wherever the log begins, which need not be 0.
            [TopicPartition(topic, number, start or OFFSET_BEGINNING) for number, (start, _) in pending.items()]
        )
        ends_left = {number: end for number, (_, end) in pending.items()}
        yield from _drain(consumer, topic, ends_left, idle_timeout_s, removed)
    finally:
        consumer.close()


def _spans(topic: str, mark: Mark, ends: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    """What is left to read, by partition: partitions new since the mark are read from their beginning."""
    for number, start in mark.offsets.items():
        if ends.get(number, 0) < start:
            raise JournalReplacedError(
                f"{topic}-{number} ends at {ends.get(number, 0)}, before the ledger's mark {start}: the journal "
                "was made anew or lost records; run `twinlog ledger rebuild`"
            )
    starts = {number: mark.offsets.get(number, 0) for number in ends}
    return {number: (starts[number], end) for number, end in ends.items() if starts[number] < end}


def _drain(
    consumer: Consumer, topic: str, ends: dict[int, int], idle_timeout_s: float, removed: Removal
) -> Iterator[list[RawEntry]]:
    chunk: list[RawEntry] = []
    quiet_since = time.monotonic()
    while ends:
        messages = consumer.consume(_BATCH, _POLL_S)
        for message in messages:
            _take(message, ends, chunk, removed)
        if messages:
            quiet_since = time.monotonic()
        elif time.monotonic() - quiet_since > idle_timeout_s:
            raise JournalUnstableError(
                f"{topic}: partitions {sorted(ends)} could not be read to their ends within {idle_timeout_s:.0f} s; "
                "an open transaction holds them back, or the brokers do not answer; try again"
            )
        if len(chunk) >= CHUNK_ENTRIES:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _take(message: Message, ends: dict[int, int], chunk: list[RawEntry], removed: Removal) -> None:
    """Put a message below its partition's end into `chunk`, or tell of it; drop ends that are reached."""
    topic, number, offset, error = message.topic(), message.partition(), message.offset(), message.error()
    ended = error is not None and error.code() == KafkaError._PARTITION_EOF
    if topic is None or number is None or offset is None or (error is not None and not ended):
        raise JournalReadError(f"{topic}-{number}: reading the journal failed: {error}")
    if number not in ends:
        return
    if not ended and offset < ends[number]:
        key, value = message.key() or b"", message.value()
        if value is None:
            removed(number, key)
        else:
            chunk.append(RawEntry(key, value, topic, number, offset))
    # At a partition's end the offset is the next record's, with markers and aborted records passed over.
    reached = offset if ended else offset + 1
    if reached >= ends[number]:
        del ends[number]
