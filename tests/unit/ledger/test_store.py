from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyarrow import fs

from support.histories import history, rows, some_id
from twinlog.errors import LedgerError
from twinlog.ledger import folder as folder_module
from twinlog.ledger.chain import Mark
from twinlog.ledger.folder import Folder
from twinlog.ledger.schema import IN_FILES, IN_MEMORY
from twinlog.ledger.store import Ledger
from twinlog.model.offsets import PartitionPair


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(str(tmp_path / "ledger"), "nyc", "lon")


def some_rows(seed: int) -> pa.Table:
    random = Random(seed)
    table = rows(history(random, PartitionPair("t", some_id(random), "nyc.t", some_id(random), 1)).entries)
    assert table.num_rows
    return table


def mark(total: int) -> Mark:
    return Mark("journal", {0: total})


def fill(ledger: Ledger, files: int) -> pa.Table:
    tables = []
    before = ledger.mark()
    for number in range(files):
        tables.append(some_rows(100 + number))
        after = mark(10 * (number + 1))
        ledger.append(tables[-1], before, after)
        before = after
    return pa.concat_tables(tables)


def listed(table: pa.Table) -> list[dict[str, object]]:
    return table.select(IN_MEMORY.names).to_pylist()


def by_place(table: list[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(table, key=lambda row: (str(row["source_topic_id"]), row["source_start"], row["count"]))


def test_an_empty_ledger_has_no_rows_and_starts_at_the_start(ledger: Ledger) -> None:
    assert ledger.mark() == Mark()
    assert ledger.read().schema == IN_MEMORY
    assert ledger.read().num_rows == 0


def test_rows_come_back_in_order_and_the_mark_moves(ledger: Ledger) -> None:
    table = fill(ledger, 3)
    assert listed(ledger.read()) == listed(table)
    assert ledger.mark() == mark(30)
    assert ledger.read(["count", "flow"]).column_names == ["count", "flow"]


def test_recording_the_same_again_changes_nothing(ledger: Ledger) -> None:
    fill(ledger, 2)
    before = {file.name for file in ledger.folder.files()}
    ledger.append(some_rows(101), mark(10), mark(20))
    assert {file.name for file in ledger.folder.files()} == before


def test_pyarrow_and_duckdb_read_the_folder_as_it_is(ledger: Ledger, tmp_path: Path) -> None:
    expected = by_place(listed(fill(ledger, 2)))
    root = tmp_path / "ledger"
    dataset = ds.dataset(root, partitioning="hive")
    assert dataset.schema.names == [*IN_FILES.names, "source", "target"]
    assert by_place(listed(dataset.to_table())) == expected
    found = duckdb.sql(f"from read_parquet('{root}/source=*/target=*/*.parquet')").to_arrow_table()
    assert by_place(listed(found)) == expected
    assert set(found["flow"].to_pylist()) == {"nyc->lon"}
    assert (set(found["source"].to_pylist()), set(found["target"].to_pylist())) == ({"nyc"}, {"lon"})


def test_a_half_written_file_is_read_by_nobody(ledger: Ledger, tmp_path: Path) -> None:
    expected = listed(fill(ledger, 1))
    (Path(ledger.folder.path) / "_writing-0123").write_bytes(b"PAR1 half")
    assert listed(ledger.read()) == expected
    assert ds.dataset(tmp_path / "ledger", partitioning="hive").count_rows() == len(expected)


def test_a_merged_file_counts_at_once_and_the_old_ones_go_after_the_grace(ledger: Ledger) -> None:
    table = fill(ledger, 4)
    files = ledger.files()
    ledger.replace(files[1:3], ledger.read_files(files[1:3]))
    assert len(ledger.files()) == 3
    assert listed(ledger.read()) == listed(table)
    merged_at = ledger.files()[1].modified_ms
    assert ledger.sweep(merged_at + 999, grace_ms=1000) == []
    assert sorted(ledger.sweep(merged_at + 1000, grace_ms=1000)) == sorted(f.link.name for f in files[1:3])
    assert listed(ledger.read()) == listed(table)
    assert ledger.mark() == mark(40)


def test_files_that_are_not_neighbours_are_not_merged(ledger: Ledger) -> None:
    fill(ledger, 3)
    files = ledger.files()
    with pytest.raises(LedgerError, match="not neighbours"):
        ledger.replace([files[0], files[2]], some_rows(1))


def test_sweeping_removes_what_crashes_left_but_not_what_is_being_written(ledger: Ledger) -> None:
    fill(ledger, 1)
    folder = Path(ledger.folder.path)
    (folder / "_writing-0123").write_bytes(b"half")
    (folder / "_mark-0123456789abcdef.json").write_text(json.dumps({}))
    now_ms = ledger.files()[0].modified_ms
    assert ledger.sweep(now_ms) == []
    day_ms = 25 * 3600 * 1000
    assert sorted(ledger.sweep(now_ms + day_ms)) == ["_mark-0123456789abcdef.json", "_writing-0123"]
    assert ledger.mark() == mark(10)


class MergingBetween(Ledger):
    """A ledger that somebody merges and sweeps after this reader has listed its files."""

    def files(self) -> list:  # type: ignore[type-arg]
        files = super().files()
        if len(files) > 1:
            self.replace(files, super().read_files(files))
            for file in files:
                self.folder.remove(file.link.name)
        return files


def test_a_reader_overtaken_by_a_merge_reads_the_merged_file(tmp_path: Path) -> None:
    table = fill(Ledger(str(tmp_path), "nyc", "lon"), 3)
    assert listed(MergingBetween(str(tmp_path), "nyc", "lon").read()) == listed(table)


class WrittenAnewAmidReading(Ledger):
    """A ledger whose only file is written anew, under its name, while it is read for the first time."""

    anew: pa.Table | None = None

    def read_files(self, *arguments: Any) -> pa.Table:
        table = super().read_files(*arguments)
        if self.anew is not None:
            self.replace(self.files(), self.anew)
            self.anew = None
        return table


def test_a_file_that_is_written_anew_amid_reading_is_read_again(tmp_path: Path) -> None:
    ledger = WrittenAnewAmidReading(str(tmp_path), "nyc", "lon")
    ledger.anew = fill(ledger, 1).slice(1)
    assert listed(ledger.read()) == listed(some_rows(100).slice(1))


def test_what_is_wrong_with_a_file_that_nobody_changes_is_said(ledger: Ledger) -> None:
    fill(ledger, 1)
    (Path(ledger.folder.path) / ledger.files()[0].link.name).write_bytes(b"PAR1 damaged")
    with pytest.raises(LedgerError, match=r"is damaged \(ArrowInvalid.*ledger rebuild"):
        ledger.read()


def test_a_ledger_with_a_lost_mark_says_what_to_do(ledger: Ledger) -> None:
    fill(ledger, 1)
    for file in ledger.folder.files():
        if file.name.startswith("_mark-"):
            ledger.folder.remove(file.name)
    with pytest.raises(LedgerError, match="ledger rebuild"):
        ledger.mark()


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_folder_is_told_to_spark_with_its_scheme(tmp_path: Path, scheme: str) -> None:
    folder = Folder(f"{scheme}{tmp_path}/x/")
    assert (folder.uri, folder.path) == (f"file://{tmp_path}/x", f"{tmp_path}/x")
    assert folder.files() == []


def test_spark_and_pyarrow_are_told_one_bucket_in_their_own_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module.fs, "FileSystem", LocalForEverything)
    folder = Folder("s3a://bucket/ledger")
    assert (folder.uri, folder.path) == ("s3a://bucket/ledger", "s3://bucket/ledger")


class LocalForEverything:
    """Stands in for pyarrow's choice of file system, which would want a real bucket."""

    @staticmethod
    def from_uri(uri: str) -> tuple[fs.FileSystem, str]:
        return fs.LocalFileSystem(), uri


def test_storage_without_our_own_rename_serves_as_well(tmp_path: Path) -> None:
    storage = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    ledger = Ledger("s3a://ledger", "nyc", "lon", storage)
    table = fill(ledger, 2)
    ledger.replace(ledger.files(), table)
    assert listed(ledger.read()) == listed(table)
    assert len(ledger.sweep(ledger.files()[0].modified_ms)) == 2
    assert (tmp_path / "ledger" / "source=nyc" / "target=lon").is_dir()


def test_an_odd_alias_makes_a_harmless_folder(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path), "a/b", "lon")
    ledger.append(some_rows(1), Mark(), mark(1))
    assert [path.name for path in tmp_path.iterdir()] == ["source=a%2Fb"]
    assert ds.dataset(tmp_path, partitioning="hive").to_table()["source"][0].as_py() == "a/b"
