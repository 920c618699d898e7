"""Quantities as people read them, the same in every command."""

from __future__ import annotations


def behind(records: int | None, seconds: float | None) -> str:
    """How much is not copied; either may be unknown by itself."""
    if records is None:
        return "unknown"
    if not records:
        return "nothing"
    return f"{records:,} records, " + ("unknown age" if seconds is None else f"{seconds:,.1f} s")
