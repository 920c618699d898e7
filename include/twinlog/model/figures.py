"""What a lane did and what it waited for: the figures from which people see what limits a flow.

They are for the log and the metrics; how much was copied is told by the journal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum


class Limit(StrEnum):
    """What a run spent most of its time on."""

    SOURCE = "source"
    TARGET = "target"
    THROTTLE = "throttle"
    """Ours, or a broker's quota."""
    COPIER = "copier"
    """Nothing was waited for: the processor is what there is too little of."""


@dataclass(slots=True)
class Figures:
    """Sums over a lane, or over many."""

    records: int = 0
    bytes: int = 0
    """Of batches that were acknowledged, in transactions that were rolled back too."""
    batches: int = 0
    transactions: int = 0
    retries: int = 0
    """How often a lane began again at its committed positions."""
    fetches: int = 0
    fetched_bytes: int = 0
    produces: int = 0
    in_flight_sum: int = 0
    """Over all Produce requests: how many were unanswered when it was sent, itself included."""
    seconds: float = 0.0
    waited_source_s: float = 0.0
    waited_target_s: float = 0.0
    throttled_s: float = 0.0
    """Waited for the flow's own throttle."""
    quota_s: float = 0.0
    """That brokers of either side asked us to wait."""

    @property
    def mean_fetch_bytes(self) -> float:
        return _mean(self.fetched_bytes, self.fetches)

    @property
    def mean_batch_bytes(self) -> float:
        return _mean(self.bytes, self.batches)

    @property
    def mean_in_flight(self) -> float:
        return _mean(self.in_flight_sum, self.produces)

    @property
    def limited_by(self) -> Limit | None:
        """What took most of the time; None where no time was taken."""
        if not self.seconds:
            return None
        waited = {
            Limit.SOURCE: self.waited_source_s,
            Limit.TARGET: self.waited_target_s,
            Limit.THROTTLE: self.throttled_s + self.quota_s,
        }
        waited[Limit.COPIER] = self.seconds - sum(waited.values())
        return max(waited, key=lambda limit: waited[limit])


def total(figures: Iterable[Figures]) -> Figures:
    """All of them added up; times too, so shares of time are those of all lanes together."""
    together = Figures()
    for one in figures:
        for column in fields(Figures):
            setattr(together, column.name, getattr(together, column.name) + getattr(one, column.name))
    return together


def _mean(total: float, count: int) -> float:
    return total / count if count else 0.0
