from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyarrow import parquet as pq

from support.histories import history, rows, some_id
from twinlog.ledger.chain import Mark
from twinlog.ledger.ledger_check import look_at
from twinlog.ledger.schema import IN_FILES
from twinlog.ledger.store import Ledger
from twinlog.model.offsets import PartitionPair


@pytest.mark.parametrize("column", range(len(IN_FILES)), ids=IN_FILES.names)
def test_damage_in_any_column_is_found(column: int, tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path), "nyc", "lon")
    random = Random(7)
    pair = PartitionPair("t", some_id(random), "nyc.t", some_id(random), 1)
    link = ledger.append(rows(history(random, pair).entries), Mark(), Mark("journal", {0: 10}))
    file = Path(ledger.folder.file_path(link.name))
    chunk = pq.read_metadata(file).row_group(0).column(column)
    content = bytearray(file.read_bytes())
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    last = begin + chunk.total_compressed_size - 1
    content[last] ^= 0xFF
    file.write_bytes(content)

    found = look_at(ledger)

    assert list(found.damaged) == [link.name]
    assert found.rows.num_rows == 0


def test_whole_files_are_read(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path), "nyc", "lon")
    random = Random(7)
    written = rows(history(random, PartitionPair("t", some_id(random), "nyc.t", some_id(random), 1)).entries)
    ledger.append(written, Mark(), Mark("journal", {0: 10}))

    found = look_at(ledger)

    assert not found.damaged
    assert found.rows.num_rows == written.num_rows
