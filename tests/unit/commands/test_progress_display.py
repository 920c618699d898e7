"""How a run's progress is shown where there is no terminal."""

from __future__ import annotations

import pytest

from twinlog.commands.console import Console
from twinlog.commands.progress_display import show_on
from twinlog.operations.progress import Progress


def at(seconds: float) -> Progress:
    return Progress(records=250, all_records=1_000, bytes=50_000_000, all_bytes=200_000_000, seconds=seconds)


def test_a_line_now_and_then_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show = show_on(Console(as_json=True))
    for seconds in (1.0, 9.0, 10.0, 11.0, 19.0, 20.0):
        show(at(seconds))
    shown = capsys.readouterr()
    assert shown.err.splitlines() == [
        "250 of 1,000 records, 50.0 MB, 5.0 MB/s, 30 s left",
        "250 of 1,000 records, 50.0 MB, 2.5 MB/s, 60 s left",
    ]
    assert shown.out == ""
