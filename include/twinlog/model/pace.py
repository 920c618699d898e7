"""Whether a flow keeps up: what its source gains against what it can copy, and who is faster, the flow or retention.

    log of a partition    |deleted|====copied====|====waiting====|
                                                 ^ the next to be copied, and of those that wait the next to expire

What is not known is None, and what is worked out from it is None too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

WINDOW_S = 300.0
"""Over so long a source's rate is taken."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How long, and up to which size of a partition, a topic's records are kept; None where there is no end to it."""

    seconds: float | None = None
    bytes: int | None = None

    @classmethod
    def of(cls, cleanup_policy: str, retention_ms: int, retention_bytes: int) -> Retention:
        """By Kafka's settings, in which -1 is no limit; what is only compacted does not expire."""
        if "delete" not in cleanup_policy:
            return cls()
        return cls(
            retention_ms / 1000 if retention_ms >= 0 else None, retention_bytes if retention_bytes >= 0 else None
        )


@dataclass(frozen=True, slots=True)
class PartitionPace:
    """One partition of the source; all is unknown of one that could not be looked at."""

    waiting_records: int | None = None
    waiting_s: float | None = None
    """How old the next record to be copied is."""
    record_bytes: float | None = None
    """The mean size of an offset."""
    gained_records: int | None = None
    """In the last WINDOW_S."""

    @property
    def waiting_bytes(self) -> float | None:
        return _product(self.waiting_records, self.record_bytes)

    @property
    def gained_bytes_per_s(self) -> float | None:
        gained = _product(self.gained_records, self.record_bytes)
        return None if gained is None else gained / WINDOW_S

    def until_expiry_s(self, retention: Retention) -> float | None:
        """How long until retention takes the next record to be copied; None where nothing waits or nothing expires."""
        if not self.waiting_records:
            return None
        margins = []
        if retention.seconds is not None and self.waiting_s is not None:
            margins.append(retention.seconds - self.waiting_s)
        waiting, rate = self.waiting_bytes, self.gained_bytes_per_s
        if retention.bytes is not None and waiting is not None and rate:
            margins.append((retention.bytes - waiting) / rate)
        return min(margins, default=None)


def summed(figures: Iterable[float | None]) -> float | None:
    """The sum; None where one of them is not known."""
    total = 0.0
    for figure in figures:
        if figure is None:
            return None
        total += figure
    return total


def earliest(times: Iterable[float | None]) -> float | None:
    """The smallest that is known."""
    return min((time for time in times if time is not None), default=None)


def catch_up_s(waiting_bytes: float | None, capacity: float | None, gained_bytes_per_s: float | None) -> float | None:
    """How long a flow needs to copy what waits while its source goes on; infinite where it would fall behind."""
    if waiting_bytes is None:
        return None
    if not waiting_bytes:
        return 0.0
    if capacity is None or gained_bytes_per_s is None:
        return None
    return waiting_bytes / (capacity - gained_bytes_per_s) if capacity > gained_bytes_per_s else math.inf


def _product(records: int | None, record_bytes: float | None) -> float | None:
    if records == 0:
        return 0.0
    return None if records is None or record_bytes is None else records * record_bytes
