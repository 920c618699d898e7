"""Quantities as people read them, the same in every command."""

from __future__ import annotations


def behind(records: int | None, seconds: float | None) -> str:
    """How much is not copied; either may be unknown by itself."""
    if records is None:
        return "unknown"
    if not records:
        return "nothing"
    return f"{records:,} records, " + ("unknown age" if seconds is None else f"{seconds:,.1f} s")


def duration(seconds: float) -> str:
    """About how long, by the unit in which people would say it."""
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}" if unit == "min" else f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"
