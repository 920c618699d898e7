"""Figures as a table of text: numbers to the right, one line a row."""

from __future__ import annotations

from collections.abc import Sequence


def lines(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[place]) for row in (header, *rows)) for place in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)])

    return [line(row) for row in (header, ["-" * width for width in widths], *rows)]


def share(part: float, whole: float) -> str:
    """A percentage, or a dash where there is nothing to compare with."""
    return f"{100 * part / whole:.0f} %" if whole else "-"


def times(one: float, other: float) -> str:
    return f"{one / other:.1f}x" if other else "-"
