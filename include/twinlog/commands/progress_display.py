"""How a run's progress looks: a bar that is drawn over on a terminal, a line now and then in a log.

All of it goes to standard error; standard output is left to the result.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from twinlog.commands.console import Console
from twinlog.commands.words import duration

if TYPE_CHECKING:
    from twinlog.operations.progress import Progress, Show

FIRST_LINE_S = 2.0
LINE_EVERY_S = 10.0

_BAR = 30


def show_on(console: Console) -> Show:
    """What a run calls with each look at itself."""
    if sys.stderr.isatty() and not console.as_json:
        return _draw
    due_s = FIRST_LINE_S

    def line(progress: Progress) -> None:
        nonlocal due_s
        # Before the first commit there is nothing to tell, unless it lets itself be waited for.
        if progress.seconds >= (due_s if progress.records else max(due_s, LINE_EVERY_S)):
            due_s = progress.seconds + LINE_EVERY_S
            console.note(sentence(progress))

    return line


def sentence(progress: Progress) -> str:
    """One look in a line."""
    left = "" if progress.left_s is None else f", {duration(progress.left_s)} left"
    return (
        f"{progress.records:,} of {progress.all_records:,} records, {progress.bytes / 1e6:,.1f} MB, "
        f"{progress.bytes_per_s / 1e6:.1f} MB/s{left}"
    )


def _draw(progress: Progress) -> None:
    share = progress.records / progress.all_records if progress.all_records else 1.0
    filled = int(share * _BAR)
    end = "\n" if progress.records >= progress.all_records else ""
    sys.stderr.write(f"\r[{'#' * filled}{'.' * (_BAR - filled)}] {share:4.0%}  {sentence(progress)}   {end}")
    sys.stderr.flush()
