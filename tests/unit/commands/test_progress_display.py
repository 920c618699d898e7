"""How a run's progress is shown: in a log, and on a terminal."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import pytest

from twinlog.commands.console import Console
from twinlog.commands.progress_display import show_on
from twinlog.operations.progress import Progress


def at(seconds: float) -> Progress:
    return Progress(records=250, all_records=1_000, bytes=50_000_000, all_bytes=200_000_000, seconds=seconds)


def test_a_line_now_and_then_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show = show_on(Console(as_json=True))
    for seconds in (1.0, 2.0, 3.0, 11.0, 12.5, 13.0, 20.0):
        show(at(seconds))
    shown = capsys.readouterr()
    assert shown.err.splitlines() == [
        "250 of 1,000 records, 50.0 MB, 25.0 MB/s, 6 s left",
        "250 of 1,000 records, 50.0 MB, 4.0 MB/s, 38 s left",
    ]
    assert shown.out == ""


@pytest.mark.parametrize(
    ("first_commit_s", "shown_at_s"), [(4.0, [4.0, 14.0]), (30.0, [10.0, 20.0, 30.0])], ids=["soon", "late"]
)
def test_the_first_line_waits_for_something_to_tell_but_not_for_long(
    capsys: pytest.CaptureFixture[str], first_commit_s: float, shown_at_s: list[float]
) -> None:
    show = show_on(Console(as_json=True))
    shown = []
    for seconds in map(float, range(1, max(int(first_commit_s), 15) + 1)):
        show(at(seconds) if seconds >= first_commit_s else replace(at(seconds), records=0, bytes=0))
        if capsys.readouterr().err:
            shown.append(seconds)
    assert shown == shown_at_s


def test_a_bar_that_is_drawn_over_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, terminal = os.openpty()
    with os.fdopen(ours, "rb", buffering=0) as screen, os.fdopen(terminal, "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        show = show_on(Console())
        show(at(2.0))
        show(Progress(records=1_000, all_records=1_000, bytes=200_000_000, all_bytes=200_000_000, seconds=8.0))
        shown = ""
        # A terminal passes on what it has: what was written in two goes may come in two.
        while not shown.endswith("\n"):
            shown += screen.read(1_000).decode()
    quarter, whole = shown.removeprefix("\r").split("\r", 1)
    assert quarter == f"[{'#' * 7}{'.' * 23}]  25%  250 of 1,000 records, 50.0 MB, 25.0 MB/s, 6 s left   "
    assert whole.startswith(f"[{'#' * 30}] 100%  1,000 of 1,000 records, 200.0 MB, 25.0 MB/s, 0 s left")
    assert whole.endswith("\r\n")
