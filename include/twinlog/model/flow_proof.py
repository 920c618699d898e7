"""A flow's settings that say how, where and how often the twin is proven equal."""

from __future__ import annotations

from dataclasses import dataclass

from twinlog.model.kinds import Integer, PositiveNumber, Schedule, Text
from twinlog.model.settings import setting

_PROOF = "Reconciliation"


@dataclass(frozen=True, kw_only=True)
class ProofSettings:
    """How the twin is proven equal."""

    reconcile_schedule: str = setting(
        "reconcile.schedule",
        "17 * * * *",
        Schedule(),
        "When Airflow proves what is new, and a share of the rest; by default once an hour.",
        section=_PROOF,
    )
    reconcile_everything_within_days: int = setting(
        "reconcile.everything.within.days",
        7,
        Integer(1),
        "Within how many days everything that both logs still hold is proven again, a share a run.",
        section=_PROOF,
    )
    reconcile_throttle: float | None = setting(
        "reconcile.throttle",
        None,
        PositiveNumber(),
        "MB/s that a reconciliation reads from each cluster at the most, over all its tasks; as fast as it can if not "
        "set.",
        section=_PROOF,
    )
    reconcile_source_spark: str | None = setting(
        "reconcile.source.spark",
        None,
        Text(),
        "A Spark beside the source (a Connect URL, or a master) that computes the source's digests, so that only these "
        "cross the distance; records cross only where digests differ.",
        section=_PROOF,
    )
