"""One partition's answer to a Fetch, selected from as far as it is sound.

Where a batch is damaged or holds a record that the target does not take, the batches before it are selected by
themselves; the next Fetch then begins with the bad one and has nothing to give but the problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from twinlog.errors import BatchTooLargeError, CorruptBatchError
from twinlog.wire.aborted import AbortedTransaction, AbortedTransactions
from twinlog.wire.batches import read_batches
from twinlog.wire.selection import Selection, select
from twinlog.wire.source import SourcePartition

_PROBLEMS = (BatchTooLargeError, CorruptBatchError)


def select_from(answer: Any, source: SourcePartition, start: int, stop: int, max_batch_bytes: int) -> Selection:
    """What a Fetch at `start` brought, up to `stop`; raises only if the very first batch is the bad one."""
    data = memoryview(answer.records)

    def selected(size: int) -> Selection:
        return select(
            data[:size],
            source=source,
            start=start,
            aborted=AbortedTransactions(
                source,
                [AbortedTransaction(one.producer_id, one.first_offset) for one in answer.aborted_transactions or ()],
            ),
            bound=answer.last_stable_offset,
            max_batch_bytes=max_batch_bytes,
            stop=stop,
        )

    try:
        return selected(len(data))
    except _PROBLEMS:
        sound = _largest_sound(list(_batch_ends(data, source, start)), selected)
        if sound is None:
            raise
        return sound


def _largest_sound(ends: list[int], selected: Any) -> Selection | None:
    """The selection from as many whole batches as can be had, by halving: the bad one spoils all that hold it."""
    best: Selection | None = None
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) // 2
        try:
            best = selected(ends[middle])
            low = middle + 1
        except _PROBLEMS:
            high = middle
    return best


def _batch_ends(data: memoryview, source: SourcePartition, start: int) -> Iterator[int]:
    """Where each whole batch ends, up to the first whose bytes are damaged."""
    end = 0
    batches = read_batches(data, source, start)
    while True:
        try:
            batch = next(batches, None)
        except CorruptBatchError:
            return
        if batch is None:
            return
        end += batch.size_bytes
        yield end
