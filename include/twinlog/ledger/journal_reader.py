"""Reads a journal from a mark to given ends, read_committed, in chunks.

It ends only when every partition has been read to its end, which an open transaction below it delays until
that transaction is decided: this wait is the third step of the barrier. No group is used and nothing is
committed; how far one has read is the ledger's mark.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from twinlog.errors import JournalReplacedError, JournalUnstableError
from twinlog.ledger.chain import Mark
from twinlog.ledger.columns import RawEntry
from twinlog.ledger.journal import Journal
from twinlog.ledger.journal_fetch import Arrived, JournalFetch
from twinlog.model.offsets import Span

CHUNK_ENTRIES = 100_000
Removal = Callable[[int, bytes], object]
"""Told the partition and the key of an entry that was removed."""


def ignored(_partition: int, _key: bytes) -> None:
    """What a reader makes of a removal that it has no use for."""


def read(
    journal: Journal, mark: Mark, ends: Mapping[int, int], *, removed: Removal = ignored
) -> Iterator[list[RawEntry]]:
    """The journal's committed entries in `[mark, ends)`, at most CHUNK_ENTRIES at a time, each partition's in order.

    A record with no value is no entry but says that an earlier one was removed, of which `removed` is told; until the
    log cleaner has run, that one is there to be read yet. Raises JournalUnstableError if for the journal's patience
    there was nothing to read and an end was still not reached.
    """
    spans = _spans(journal.topic, mark, ends)
    if not spans:
        return
    chunk: list[RawEntry] = []
    for partition, records in _arriving(journal, spans):
        topic = journal.topic
        for record in records:
            if record.value is None:
                removed(partition, record.key or b"")
            else:
                chunk.append(RawEntry(record.key or b"", record.value, topic, partition, record.offset))
        while len(chunk) >= CHUNK_ENTRIES:
            yield chunk[:CHUNK_ENTRIES]
            del chunk[:CHUNK_ENTRIES]
    if chunk:
        yield chunk


def _spans(topic: str, mark: Mark, ends: Mapping[int, int]) -> dict[int, Span]:
    """What is left to read, by partition: partitions new since the mark are read from their beginning."""
    for number, start in mark.offsets.items():
        if ends.get(number, 0) < start:
            raise JournalReplacedError(
                f"{topic}-{number} ends at {ends.get(number, 0)}, before the ledger's mark {start}: the journal "
                "was made anew or lost records; run `twinlog ledger rebuild`"
            )
    starts = {number: mark.offsets.get(number, 0) for number in ends}
    return {number: Span(starts[number], end) for number, end in ends.items() if starts[number] < end}


def _arriving(journal: Journal, spans: Mapping[int, Span]) -> Iterator[Arrived]:
    """Everything in the spans, as it comes."""
    fetch = JournalFetch(journal, spans)
    progress, quiet_since = fetch.progress(), time.monotonic()
    while unread := fetch.unread():
        yield from journal.client.run(fetch.round())
        if fetch.progress() > progress:
            progress, quiet_since = fetch.progress(), time.monotonic()
        elif time.monotonic() - quiet_since > journal.patience_s:
            reason = fetch.trouble or "an open transaction holds them back"
            raise JournalUnstableError(
                f"cluster {journal.client.alias}: {journal.topic}: partitions {unread} could not be read to their ends "
                f"within {journal.patience_s:.0f} s: {reason}; try again"
            )
