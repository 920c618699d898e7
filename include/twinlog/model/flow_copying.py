"""A flow's settings that say how records are copied, and how much at once."""

from __future__ import annotations

from dataclasses import dataclass

from twinlog.model.kinds import Choice, Integer, PositiveNumber, Text
from twinlog.model.settings import setting

_COPYING = "Copying"


@dataclass(frozen=True, kw_only=True)
class CopyingSettings:
    """How a run copies."""

    route: str = setting(
        "route",
        "bytes",
        Choice(("bytes", "records")),
        "`bytes` moves whole record batches; `records` decodes them and lets Spark SQL look at each record.",
        section=_COPYING,
        planned=True,
    )
    where: str | None = setting(
        "where",
        None,
        Text(),
        "A Spark SQL condition; records for which it is not true are left out and counted. Only with `route: records`.",
        section=_COPYING,
        planned=True,
    )
    select: str | None = setting(
        "select",
        None,
        Text(),
        "Spark SQL expressions that replace parts of a record (`key`, `value`, `headers`, `topic`). Only "
        "with `route: records`.",
        section=_COPYING,
        planned=True,
    )
    provenance: str = setting(
        "provenance",
        "none",
        Choice(("none", "headers")),
        "`headers` adds where a record came from to its headers, for topics that other replicators write "
        "to as well. Only with `route: records`.",
        section=_COPYING,
        planned=True,
    )
    on_expired: str = setting(
        "on.expired",
        "continue",
        Choice(("continue", "stop")),
        "What a run does where retention on the source overtook the position. Either way the lost offsets are named.",
        section=_COPYING,
    )
    throttle: float | None = setting(
        "throttle",
        None,
        PositiveNumber(),
        "The most that all tasks of the flow together write, in MB (1,000,000 bytes) a second.",
        section=_COPYING,
    )
    budget_bytes: int = setting(
        "budget.bytes",
        4 * 1024**3,
        Integer(1),
        "The most one run copies, in bytes.",
        section=_COPYING,
    )
    budget_records: int | None = setting(
        "budget.records",
        None,
        Integer(1),
        "The most one run copies, in records.",
        section=_COPYING,
    )
    budget_seconds: int = setting(
        "budget.seconds",
        300,
        Integer(1),
        "How long one run copies before it ends and the next one goes on.",
        section=_COPYING,
    )
    transaction_bytes: int = setting(
        "transaction.bytes",
        64 * 1024**2,
        Integer(1),
        "A lane commits after so many bytes ...",
        section=_COPYING,
    )
    transaction_seconds: int = setting(
        "transaction.seconds",
        10,
        Integer(1),
        "... or after so many seconds. Must stay below the target's `transaction.max.timeout.ms`.",
        section=_COPYING,
    )
    lanes: int = setting(
        "lanes",
        8,
        Integer(1),
        "How many writers the target's partitions are shared among; the most Spark tasks that copy at once.",
        section=_COPYING,
    )
    profile: str = setting(
        "profile",
        "lan",
        Choice(("lan", "wan")),
        "`wan` has longer time-outs, larger buffers and more retries for distant data centres; see the "
        "client properties below.",
        section=_COPYING,
    )
