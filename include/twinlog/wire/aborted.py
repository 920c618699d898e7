"""Which batches belong to aborted transactions, from the list that a Fetch answer carries.

    list: (producer 7, first offset 12)

    offset   10    11    12    13    14    15    16
    producer  7     8     7     8     7     7     7
              data  data  data  data  ABORT data  COMMIT
              kept  kept  drop  kept  ----  kept  ----

A producer's batches are aborted from the listed first offset to its next abort marker. The list is not a
filter by producer: the same producer's batches before and after are somebody's committed data.

Always: one object serves one Fetch answer. A broker lists, in every answer, each aborted transaction that
touches the answer's offsets, also one that began earlier, so nothing has to be remembered from the answer
before. Remembering would be wrong: once compaction has removed an abort marker, a remembered producer would
stay aborted for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from twinlog.wire.batches import Batch
from twinlog.wire.source import SourcePartition, corrupt
from twinlog.wire.varint import read_varint

_ABORT = 0


class AbortedTransaction(NamedTuple):
    """An entry of the Fetch answer's list."""

    producer_id: int
    first_offset: int


class AbortedTransactions:
    """Follows the batches of one Fetch answer in their order and says which of them are aborted."""

    def __init__(self, source: SourcePartition, listed: Iterable[AbortedTransaction] | None) -> None:
        """`listed` is None or empty where the answer names no aborted transaction."""
        self._source = source
        # The latest first, so that the next to begin is popped from the end.
        self._to_begin = sorted(listed or (), key=lambda entry: entry.first_offset, reverse=True)
        self._open: set[int] = set()

    def follow(self, batch: Batch) -> bool:
        """Take note of the next batch, of any kind; whether its records are aborted data."""
        header = batch.header
        if header.producer_id < 0:
            return False
        while self._to_begin and self._to_begin[-1].first_offset < header.next_offset:
            self._open.add(self._to_begin.pop().producer_id)
        if header.is_control:
            if self._open and is_abort_marker(batch, self._source):
                self._open.discard(header.producer_id)
            return False
        return header.is_transactional and header.producer_id in self._open


def is_abort_marker(batch: Batch, source: SourcePartition) -> bool:
    """Whether a control batch ends a transaction by aborting it; one emptied by compaction does not.

    A control record's key is a version and a type, two bytes each; control batches are never compressed.
    """
    if batch.header.record_count == 0:
        return False
    try:
        return _control_type(batch.body) == _ABORT
    except (IndexError, ValueError) as error:
        problem = f"a transaction marker cannot be read ({error})"
        raise corrupt(source, batch.header.base_offset, problem) from error


def _control_type(body: memoryview) -> int:
    at = read_varint(body, 0)[1] + 1  # the record's length, then its attributes
    at = read_varint(body, at)[1]  # timestamp delta
    at = read_varint(body, at)[1]  # offset delta
    key_length, at = read_varint(body, at)
    if not 4 <= key_length <= len(body) - at:
        raise ValueError(f"a key of {key_length} bytes")
    return int.from_bytes(body[at + 2 : at + 4], "big")
