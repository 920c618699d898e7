"""The barrier between data and journal: what it takes to be sure that every visible record has its entry.

EndTxn answers before the markers are written, and a partition's records become visible when its own marker
is, so a reader may see data whose journal entry it cannot see yet, or the other way round. The order of
three steps removes the doubt:

    1  the data partitions' last stable offsets      every record below belongs to a transaction that has ended
    2  the journal's high watermarks                 the entries of those transactions were produced before that
    3  the journal, read_committed, up to the marks  waits until each of those transactions is decided here too

Whoever needs both, recording, checkpoints, failover, or the way back of a two-way name, goes through
`behind`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from twinlog.model.offsets import TopicPartition

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Proven(Generic[T]):
    """What holds behind the barrier: below `data_ends`, every copied record has its entry in what was read."""

    data_ends: Mapping[TopicPartition, int]
    journal_ends: Mapping[int, int]
    read: T


def behind(
    last_stable_offsets: Callable[[], Mapping[TopicPartition, int]],
    journal_high_watermarks: Callable[[], Mapping[int, int]],
    read_journal_to: Callable[[Mapping[int, int]], T],
) -> Proven[T]:
    """Take the three steps, in this order.

    `last_stable_offsets` answers for the target's data partitions, `journal_high_watermarks` for all journal
    partitions, and `read_journal_to` returns only once it has read read_committed up to the ends it is given.
    """
    data_ends = last_stable_offsets()
    journal_ends = journal_high_watermarks()
    return Proven(data_ends, journal_ends, read_journal_to(journal_ends))
