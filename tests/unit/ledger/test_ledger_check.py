from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from support.histories import history, rows, some_id
from twinlog.ledger.chain import Mark
from twinlog.ledger.ledger_check import gone_from_journal, look_at
from twinlog.ledger.proof_rows import COLUMNS, by_target
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


def past(seed: int) -> tuple[PartitionPair, pa.Table]:
    random = Random(seed)
    while True:
        pair = PartitionPair("orders", some_id(random), "nyc.orders", some_id(random), 3)
        made = history(random, pair)
        if len(made.entries) > 4:
            return pair, rows(made.entries)


def test_no_byte_of_a_file_can_be_damaged_unnoticed(tmp_path: Path) -> None:
    """Whatever is hit, the file is named, or all that it says is still right."""
    _, table = past(7)
    ledger = Ledger(str(tmp_path / "ledger"), "nyc", "lon")
    link = ledger.append(table, Mark(), Mark("journal", {0: 60}))
    file = Path(ledger.folder.file_path(link.name))
    whole = file.read_bytes()
    right = look_at(ledger).rows.to_pylist()
    noticed = 0
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        file.write_bytes(damaged)
        found = look_at(ledger)
        assert link.name in found.damaged or found.rows.to_pylist() == right, place
        noticed += link.name in found.damaged
    assert noticed > len(whole) / 7 / 3


def test_rows_that_the_journal_accounts_for_no_more_are_counted() -> None:
    pair, table = past(11)
    table = table.select(list(COLUMNS))
    ((one,),) = by_target(table).values()
    floors = {pair: (0, 0)}
    assert gone_from_journal([one], table, floors) == {}
    assert gone_from_journal([one], table.slice(2), floors) == {pair: 2}
    assert gone_from_journal([one], table.slice(0, 0), {pair: (2**40, 2**40)}) == {}, "both logs have dropped them"
