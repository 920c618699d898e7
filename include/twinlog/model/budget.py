"""The most that one run is to copy, and what of it each partition may have.

A budget that is too small for all is shared evenly, and what a small partition does not need goes to the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """The most one run is to copy; None is no limit. A partition's share is rounded up to a whole record."""

    bytes: int | None = None
    records: int | None = None
    seconds: float | None = None
    bytes_per_second: float | None = None
    """What the flow is known or allowed to move; without it `seconds` does not bound the plan."""

    @property
    def most_bytes(self) -> float:
        limits = [math.inf if self.bytes is None else float(self.bytes)]
        if self.seconds is not None and self.bytes_per_second is not None:
            limits.append(self.seconds * self.bytes_per_second)
        return min(limits)

    @property
    def most_records(self) -> float:
        return math.inf if self.records is None else float(self.records)


NO_LIMIT = Budget()


def grant(ready: Sequence[int], sizes: Sequence[float], budget: Budget) -> list[int]:
    """How many records each partition may copy, so that both limits hold for the sum."""
    level = _level(ready, budget.most_records)
    counts = [min(count, math.ceil(level)) if level < count else count for count in ready]
    weights = [count * size for count, size in zip(counts, sizes, strict=True)]
    level = _level(weights, budget.most_bytes)
    return [
        min(count, math.ceil(level / size)) if level < weight else count
        for count, size, weight in zip(counts, sizes, weights, strict=True)
    ]


def _level(wants: Sequence[float], most: float) -> float:
    """The height to which water poured over the wants stands: no one gets more, and nothing is left that another
    could use. Infinite where there is enough for all."""
    if sum(wants) <= most:
        return math.inf
    left = most
    ordered = sorted(wants)
    for place, want in enumerate(ordered):
        share = left / (len(ordered) - place)
        if want > share:
            return share
        left -= want
    return math.inf
