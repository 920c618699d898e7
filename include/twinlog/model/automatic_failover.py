"""When a failover may begin by itself: every probe says that the source is gone, and has said so for long enough.

Nothing else will do. One probe that sees the source, one that can't tell, or a moment in which nobody looked, and the
time begins anew; one probe alone never decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

LEAST_PROBES = 2


class Vote(StrEnum):
    """What one probe says of the source."""

    ALIVE = "alive"
    GONE = "gone"
    UNKNOWN = "can't tell"


Votes = Mapping[str, Vote]
"""By the probe's name."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Since when all probes have agreed that the source is gone; times are of one clock that only goes forward."""

    since_s: float | None = None
    looked_s: float | None = None

    def after(self, votes: Votes, at_s: float, *, longest_break_s: float) -> Agreement:
        """What is known after one more look; a break longer than this ends what was agreed before it."""
        agreed = len(votes) >= LEAST_PROBES and all(vote is Vote.GONE for vote in votes.values())
        if not agreed:
            return Agreement(None, at_s)
        unbroken = self.looked_s is not None and at_s - self.looked_s <= longest_break_s
        since_s = self.since_s if unbroken and self.since_s is not None else at_s
        return Agreement(since_s, at_s)

    def has_lasted(self, seconds: float) -> bool:
        """Whether the probes have agreed for so long, up to the last look."""
        return self.since_s is not None and self.looked_s is not None and self.looked_s - self.since_s >= seconds
