"""What a flow can copy, by the ledger's own record of its runs."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from support.histories import history, rows, some_id
from twinlog.ledger.chain import Mark
from twinlog.ledger.schema import IN_MEMORY
from twinlog.ledger.store import Ledger
from twinlog.model.offsets import PartitionPair
from twinlog.operations.pace import RECENT_FILES, copy_capacity


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(str(tmp_path / "ledger"), "nyc", "lon")


def commits(run: str, *parts: tuple[int, int]) -> pa.Table:
    """Rows of a run, each with its time of commit in milliseconds and its bytes."""
    chance = Random(1)
    template = rows(history(chance, PartitionPair("t", some_id(chance), "nyc.t", some_id(chance), 0)).entries).slice(
        0, 1
    )
    row = template.to_pylist()[0]
    return pa.Table.from_pylist([{**row, "run": run, "copied_at_ms": at, "bytes": size} for at, size in parts]).cast(
        IN_MEMORY
    )


def record(ledger: Ledger, *tables: pa.Table) -> None:
    before = ledger.mark()
    for number, table in enumerate(tables, start=1):
        after = Mark("journal", {0: number})
        ledger.append(table, before, after)
        before = after


def test_the_fastest_run_counts_from_its_first_commit_to_its_last(ledger: Ledger) -> None:
    slow = commits("a", (1_000, 500), (3_000, 100), (3_000, 100))
    fast = commits("b", (9_000, 10_000), (10_000, 400), (11_000, 600))
    record(ledger, slow, fast)
    assert copy_capacity(ledger) == 500


def test_a_run_in_two_files_is_one(ledger: Ledger) -> None:
    record(ledger, commits("a", (1_000, 5)), commits("a", (3_000, 800)))
    assert copy_capacity(ledger) == 400


def test_runs_of_a_moment_tell_nothing(ledger: Ledger) -> None:
    assert copy_capacity(ledger) is None
    record(ledger, commits("a", (1_000, 500)), commits("b", (5_000, 500), (5_200, 10**9)))
    assert copy_capacity(ledger) is None


def test_what_is_long_ago_does_not_count(ledger: Ledger) -> None:
    older = commits("a", (1_000, 1), (2_000, 10**9))
    record(ledger, older, *[commits(f"r{number}", (10_000, 1), (12_000, 50)) for number in range(RECENT_FILES)])
    assert copy_capacity(ledger) == 25
