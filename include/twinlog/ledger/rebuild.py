"""Rebuilding: the ledger made anew from the journal alone.

One file from the journal's beginning to its end is written whole and then published under its final name;
as it leads from the start to the end in one step, it is the ledger from that moment on (see `chain`), on a
disk and on an object store alike. The files it replaces are removed afterwards; if that is cut short, they
are unread, or, where they reach further because the journal was made anew, still the ledger, until the
rebuild is repeated.

Entries that were removed from the journal, because both logs had dropped their records, come back until the
broker's log cleaner has been there, and not afterwards. Either way the ledger is right: they say nothing about
what the logs still hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from twinlog.ledger.chain import Link, Mark
from twinlog.ledger.journal import Journal
from twinlog.ledger.record import collect
from twinlog.ledger.store import Ledger


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild did."""

    rows: int
    rows_before: int
    files_removed: int


def rebuild(ledger: Ledger, journal: Journal, ends: Mapping[int, int]) -> Rebuilt:
    """Replace `ledger` by what the journal holds up to `ends`, as the barrier took them."""
    rows_before = sum(_rows_of(ledger, file.link.name) for file in ledger.files())
    table = collect(journal, Mark(), ends)
    kept = ""
    if table.num_rows:
        kept = ledger.append(table, Mark(), Mark(journal.topic_id, dict(ends))).name
    old = [file.name for file in ledger.folder.files() if Link.parse(file.name) and file.name != kept]
    # From the far end: what is left if this is cut short is a ledger up to some mark, not one with a hole.
    for name in sorted(old, reverse=True):
        ledger.folder.remove(name)
    return Rebuilt(table.num_rows, rows_before, len(old))


def _rows_of(ledger: Ledger, name: str) -> int:
    """How many rows a file says that it has; one that is damaged, for which a rebuild may be meant, says nothing."""
    try:
        return ledger.row_count([name])
    except (OSError, pa.ArrowException):
        return 0
