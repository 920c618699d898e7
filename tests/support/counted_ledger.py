"""A ledger that counts what is read of it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from twinlog.ledger.row_groups import Needed, all_rows
from twinlog.ledger.schema import IN_MEMORY
from twinlog.ledger.store import Ledger, LiveFile


class CountedLedger(Ledger):
    """Counts rows, whoever asks for them."""

    rows_read = 0
    reads = 0

    def read_files(
        self, files: Sequence[LiveFile], columns: Sequence[str] = IN_MEMORY.names, needed: Needed = all_rows
    ) -> pa.Table:
        table = super().read_files(files, columns, needed)
        self.rows_read += table.num_rows
        self.reads += 1
        return table
