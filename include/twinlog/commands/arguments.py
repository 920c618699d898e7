"""Kinds of arguments that several commands take; each says in a sentence what it expected."""

from __future__ import annotations

import argparse

_DAY_S = 86_400


def seconds(text: str) -> float:
    """A time-out."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < _DAY_S:
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, not {text!r}")
    return number


def positive(text: str) -> int:
    """A size or a count of something."""
    number = _whole(text)
    if number is None or number <= 0:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, not {text!r}")
    return number


def offset(text: str) -> int:
    """An offset or the number of a partition."""
    number = _whole(text)
    if number is None or number < 0:
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 on, not {text!r}")
    return number


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
