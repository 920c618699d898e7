from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from twinlog.errors import LedgerError
from twinlog.ledger.store import Ledger
from twinlog.operations.recovery_series import Event, Recovery, RecoverySeries

DRILL = Recovery("nyc->lon", 1_700_000_000_000, Event.DRILL, 4.5, 1.5, 0, 2, 2, 100, 0)


def test_events_are_kept_oldest_first_and_the_last_that_measured_counts(tmp_path: Path) -> None:
    series = RecoverySeries(Ledger(str(tmp_path), "nyc", "lon"))
    assert (series.last(), series.events()) == (None, [])
    without = replace(DRILL, at_ms=DRILL.at_ms + 1, recovery_time_s=None)
    series.add(without)
    series.add(DRILL)
    series.add(DRILL)
    assert series.events() == [DRILL, without]
    assert series.last() == DRILL
    assert RecoverySeries(Ledger(str(tmp_path), "lon", "nyc")).last() is None


def test_the_ledger_is_no_more_than_before(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path), "nyc", "lon")
    RecoverySeries(ledger).add(DRILL)
    assert ledger.files() == []


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path), "nyc", "lon")
    RecoverySeries(ledger).add(DRILL)
    (file,) = Path(tmp_path, "_recovery", "source=nyc", "target=lon").iterdir()
    file.write_bytes(b"nothing")
    with pytest.raises(LedgerError, match=file.name):
        RecoverySeries(ledger).last()
