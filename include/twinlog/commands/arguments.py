"""Kinds of arguments that several commands take; each says in a sentence what it expected."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime

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


def pattern(text: str) -> str:
    """A regular expression, as the topology has them."""
    try:
        re.compile(text)
    except re.error as wrong:
        raise argparse.ArgumentTypeError(f"{text!r} is no pattern: {wrong}") from None
    return text


def moment(text: str) -> int:
    """A time as milliseconds since 1970, or in ISO 8601; without a zone it is UTC."""
    number = _whole(text)
    if number is not None and number >= 0:
        return number
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected a time such as 2026-01-31T12:00:00Z, or milliseconds since 1970, not {text!r}"
        ) from None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
