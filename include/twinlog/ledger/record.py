"""Recording: the journal's new entries become one file of the ledger. The only way into the ledger.

It reads from the ledger's mark, so it makes up for whatever an earlier recording did not come to: a crash
between the copier's commit and the ledger's file costs nothing but the next recording's time. Repeating it
changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from twinlog.errors import JournalReplacedError
from twinlog.ledger import journal_reader
from twinlog.ledger.chain import Mark
from twinlog.ledger.columns import to_table
from twinlog.ledger.journal import Journal
from twinlog.ledger.journal_reader import Removal, ignored
from twinlog.ledger.schema import IN_MEMORY
from twinlog.ledger.store import Ledger

MANY_REMOVALS = 1_000
"""So many records that remove entries are not read again and again by recordings that find nothing else."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a recording did."""

    rows: int
    file: str | None
    """The file that was written, without rows where it only moves the mark; None where the journal had nothing new."""
    mark: Mark


def record(ledger: Ledger, journal: Journal, ends: Mapping[int, int]) -> Recorded:
    """Bring `ledger` up to `ends`, the journal's high watermarks as the barrier took them."""
    before = ledger.mark()
    if before.journal_id not in ("", journal.topic_id):
        raise JournalReplacedError(
            f"{journal.topic} has the id {journal.topic_id}, the ledger of {ledger.flow} was recorded from "
            f"{before.journal_id}: the topic was made anew; run `twinlog ledger rebuild`"
        )
    removals = 0

    def removed(_partition: int, _key: bytes) -> None:
        nonlocal removals
        removals += 1

    table = collect(journal, before, ends, removed)
    if table.num_rows == 0 and removals < MANY_REMOVALS:
        # Markers and a few removals do not move the mark: a file without rows is one more for every reader to open.
        return Recorded(0, None, before)
    after = Mark(journal.topic_id, {**before.offsets, **ends})
    return Recorded(table.num_rows, ledger.append(table, before, after).name, after)


def collect(journal: Journal, mark: Mark, ends: Mapping[int, int], removed: Removal = ignored) -> pa.Table:
    """The rows of `[mark, ends)`; texts stay dictionary-encoded, so that millions fit in memory."""
    chunks = journal_reader.read(journal, mark, ends, removed=removed)
    return pa.concat_tables([IN_MEMORY.empty_table(), *map(to_table, chunks)]).unify_dictionaries()
