"""A byte rate that holds over time and may change at any moment. Values in, values out: the caller owns the clock."""

from __future__ import annotations

from collections.abc import Collection, Mapping

BURST_S = 0.25
"""How much of a second's bytes may go at once: small enough to be even, large enough for a whole batch."""


def share_of_rest(shares: Mapping[int, float], of: int, done: Collection[int]) -> float:
    """The share of one when those that are `done` leave theirs to the others, to each by what it has."""
    left = sum(share for number, share in shares.items() if number == of or number not in done)
    return shares[of] / left


class Throttle:
    """Says how long to wait before the next bytes may go.

    What was sent beyond the allowance is owed and paid by waiting, so the rate holds however large the batches are.
    """

    def __init__(self, bytes_per_s: float, now_s: float) -> None:
        self._rate = bytes_per_s
        self._allowance = bytes_per_s * BURST_S
        self._at_s = now_s

    def change(self, bytes_per_s: float, now_s: float) -> None:
        """Another rate from now on; 0 or less lifts it. What is owed at the old rate is kept."""
        self._earn(now_s)
        self._rate = bytes_per_s
        self._allowance = min(self._allowance, bytes_per_s * BURST_S)

    def take(self, size: int, now_s: float) -> float:
        """Account for `size` bytes and answer the seconds to wait before sending more; 0 when there is no limit."""
        if self._rate > 0:
            self._earn(now_s)
            self._allowance -= size
        return self.owed_s(now_s)

    def owed_s(self, now_s: float) -> float:
        """The seconds to wait before sending more, at the rate that holds now."""
        if self._rate <= 0:
            return 0.0
        self._earn(now_s)
        return max(0.0, -self._allowance / self._rate)

    def _earn(self, now_s: float) -> None:
        # Several lanes ask in turn, some for a moment that is past: no moment is earned twice.
        earned = max(0.0, now_s - self._at_s) * self._rate
        self._allowance = min(self._allowance + earned, self._rate * BURST_S)
        self._at_s = max(self._at_s, now_s)
