"""What one Spark task is told to copy, and the doing of it where the task runs.

An order is values all the way down, so that it can be pickled and sent to an executor. It carries the clusters'
resolved settings, secrets included, and so it shows nothing when it is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.copier import Copier, CopySettings, LaneReport
from twinlog.cluster.secrets import ResolvedSettings, remember_all
from twinlog.model.plan import PlannedRange


@dataclass(frozen=True)
class CopyOrder:
    """One task's share of a run."""

    settings: CopySettings
    ranges: tuple[PlannedRange, ...]
    max_batch_bytes: Mapping[str, int]
    source_settings: Mapping[str, str] = field(repr=False)
    target_settings: Mapping[str, str] = field(repr=False)


Executor = Callable[[list[CopyOrder]], list[LaneReport]]
"""Has every order carried out and answers what became of each lane: here, or on Spark."""


def carry_out(order: CopyOrder) -> list[LaneReport]:
    """Copy what the order says, in this process."""
    for settings in (order.source_settings, order.target_settings):
        remember_all(settings)
    source = ClusterAccess(order.settings.source, ResolvedSettings(order.source_settings))
    target = ClusterAccess(order.settings.target, ResolvedSettings(order.target_settings))
    with target.raw() as writing, source.raw(beside=writing) as reading:
        return Copier(reading, writing, order.settings).copy(order.ranges, order.max_batch_bytes)


def carry_out_here(orders: list[CopyOrder]) -> list[LaneReport]:
    """An executor without Spark: one order after the other."""
    return [report for order in orders for report in carry_out(order)]
