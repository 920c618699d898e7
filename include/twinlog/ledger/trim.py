"""Which of a journal's entries may be removed: those that the ledger has recorded and may itself drop.

The rule is the one that rows are dropped by (`compact`), applied to the journal's own entries, since a row of the
ledger may stand for several of them that were joined. So the journal keeps each pair's last entry and its last with
records, and a ledger that is rebuilt from it answers for everything that either log still holds.

A removal names a key, and may be written long after it was decided on. It takes nothing else with it: a key holds the
source offset that copying went on from, and positions never go back, so no later entry has it. Should the same key have
been recorded twice even so, it is removed only if both entries may go.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from twinlog.ledger import journal_reader
from twinlog.ledger.chain import Mark
from twinlog.ledger.columns import to_table
from twinlog.ledger.compact import RULED_BY, Retention, kept_rows
from twinlog.ledger.journal import Journal
from twinlog.ledger.schema import IN_MEMORY

Removable = Mapping[int, list[bytes]]
"""The keys of entries, by the partition of the journal they are in."""


def removable(journal: Journal, mark: Mark, ends: Mapping[int, int], retention: Retention) -> Removable:
    """The entries recorded up to `mark` that may be removed and have not been; `ends` are the journal's own."""
    removed: set[tuple[int, bytes]] = set()
    keys: list[tuple[int, bytes]] = []
    tables = [IN_MEMORY.empty_table().select(RULED_BY)]
    chunks = journal_reader.read(
        journal,
        Mark(),
        # Beyond the mark too: a removal is no entry, so recordings do not move the mark past it.
        ends,
        removed=lambda partition, key: removed.add((partition, key)),
    )
    for chunk in chunks:
        recorded = [entry for entry in chunk if entry.offset < mark.offsets.get(entry.partition, 0)]
        keys += [(entry.partition, entry.key) for entry in recorded]
        tables.append(to_table(recorded).select(RULED_BY))
    kept = kept_rows(pa.concat_tables(tables).unify_dictionaries(), retention)
    staying = {key for key, stays in zip(keys, kept.tolist(), strict=True) if stays}
    going: dict[int, list[bytes]] = {}
    for partition, key in dict.fromkeys(keys):
        if (partition, key) not in staying and (partition, key) not in removed:
            going.setdefault(partition, []).append(key)
    return going
