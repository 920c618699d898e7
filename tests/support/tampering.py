"""A copier that writes something else than it read, and journals what it read: what a fault in between would leave.

The records are changed where they are stamped for sending, in this process only; positions, journal and ledger are the
real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from twinlog.cluster.produce_request import Pieces
from twinlog.cluster.transaction import TransactionalWriter
from twinlog.model.offsets import TopicPartition
from twinlog.wire.encoder import encode
from twinlog.wire.outgoing import NO_GAPS, OutgoingBatch
from twinlog.wire.outgoing_records import open_outgoing
from twinlog.wire.records import RawRecord
from twinlog.wire.source import SourcePartition

Change = Callable[[list[RawRecord]], list[RawRecord]]


@contextmanager
def tampering(changes: Mapping[str, Change]) -> Iterator[None]:
    """Within the block, batches for these target topics are sent with their records changed."""
    stamp = TransactionalWriter.stamp

    def changed(writer: TransactionalWriter, partition: TopicPartition, batch: OutgoingBatch) -> Pieces:
        change = changes.get(partition.topic)
        return stamp(writer, partition, batch if change is None else _rewritten(batch, change))

    TransactionalWriter.stamp = changed  # type: ignore[method-assign]
    try:
        yield
    finally:
        TransactionalWriter.stamp = stamp  # type: ignore[method-assign]


def _rewritten(batch: OutgoingBatch, change: Change) -> OutgoingBatch:
    where = SourcePartition("tampered", "tampered", 0)
    records = change(open_outgoing(batch, where))
    # The encoder wants rising offsets, and writes none of them.
    renumbered = [record._replace(offset=number) for number, record in enumerate(records)]
    (written,) = encode(renumbered, batch.codec, NO_GAPS, max_batch_bytes=2**31 - 1, source=where)
    return written


def dropped(place: int) -> Change:
    return lambda records: records[:place] + records[place + 1 :]


def doubled(place: int) -> Change:
    return lambda records: [*records, records[place]]


def swapped(first: int, second: int) -> Change:
    def change(records: list[RawRecord]) -> list[RawRecord]:
        changed = list(records)
        changed[first], changed[second] = records[second], records[first]
        return changed

    return change


def replaced(place: int, old: bytes, new: bytes) -> Change:
    """Of one record's key, value and headers, some bytes by as many others."""

    def change(records: list[RawRecord]) -> list[RawRecord]:
        record = records[place]
        assert record.content.count(old) == 1
        assert len(old) == len(new)
        return [*records[:place], record._replace(content=record.content.replace(old, new)), *records[place + 1 :]]

    return change


def stamped(place: int, timestamp_ms: int) -> Change:
    return lambda records: [
        *records[:place],
        records[place]._replace(timestamp_ms=timestamp_ms),
        *records[place + 1 :],
    ]
