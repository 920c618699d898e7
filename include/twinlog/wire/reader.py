"""All records in the bytes of a Fetch answer, opened: what tests compare and what deep reconciliation reads.

Always: every whole batch is read, markers and aborted data included; leaving those out is `selection`'s
task.
"""

from __future__ import annotations

from collections.abc import Iterator

from twinlog.wire.batches import Batch, LegacyMessage, read_batches
from twinlog.wire.legacy import is_stamped_by_broker, read_message
from twinlog.wire.records import Record, open_record, read_raw
from twinlog.wire.source import SourcePartition


def read_records(data: memoryview, source: SourcePartition, position: int) -> Iterator[Record]:
    """The records of all whole batches; `position`, the offset asked for, is for messages."""
    for batch in read_batches(data, source, position):
        yield from records_of(batch, source)


def records_of(batch: Batch | LegacyMessage, source: SourcePartition) -> Iterator[Record]:
    """The records of one batch of any format."""
    if isinstance(batch, LegacyMessage):
        raw, by_broker = read_message(batch, source), is_stamped_by_broker(batch)
    else:
        raw, by_broker = read_raw(batch, source), batch.header.is_log_append_time
    for record in raw:
        yield open_record(record, source, is_log_append_time=by_broker)
