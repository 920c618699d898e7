"""A flow's settings that say when and where it runs, and what it must achieve."""

from __future__ import annotations

from dataclasses import dataclass

from twinlog.model.kinds import Boolean, Integer, Schedule, Text
from twinlog.model.settings import setting

_RUNNING = "When and where it runs"


@dataclass(frozen=True, kw_only=True)
class RunningSettings:
    """When a flow runs, where, and how quickly it must be ready."""

    enabled: bool = setting(
        "enabled",
        True,
        Boolean(),
        "Whether the flow runs. A flow that is listed is wanted, so the default is true; MirrorMaker 2 "
        "looks at every pair of clusters and mirrors those that say `enabled = true`.",
        section=_RUNNING,
        mm2=True,
    )
    schedule: str = setting(
        "schedule",
        "* * * * *",
        Schedule(),
        "When Airflow starts a run; `@continuous` starts the next one as soon as the last has ended.",
        section=_RUNNING,
    )
    status_schedule: str = setting(
        "status.schedule",
        "*/5 * * * *",
        Schedule(),
        "When Airflow looks at the flow: for the page, the metrics, and alerts.",
        section=_RUNNING,
    )
    canary_schedule: str | None = setting(
        "canary.schedule",
        None,
        Schedule(),
        "When Airflow sends canaries through the flow; by hand only if not set.",
        section=_RUNNING,
    )
    drill_schedule: str | None = setting(
        "drill.schedule",
        "@weekly",
        Schedule(),
        "When Airflow rehearses a failover of the flow, on shadow groups; by hand only where it is null.",
        section=_RUNNING,
    )
    spark: str | None = setting(
        "spark",
        None,
        Text(),
        "The Airflow connection of the Spark that copies, or a Connect URL (`sc://host:port`) or a "
        "master. By default the target cluster's, then the topology's.",
        section=_RUNNING,
    )
    queue: str | None = setting(
        "queue",
        None,
        Text(),
        "The Airflow queue of the flow's tasks. By default the target cluster's, then Airflow's own.",
        section=_RUNNING,
    )
    ledger: str | None = setting(
        "ledger",
        None,
        Text(),
        "Where the flow's ledger is. By default the target cluster's place, then the topology's.",
        section=_RUNNING,
    )
    recovery_point_seconds: int | None = setting(
        "recovery.point.seconds",
        None,
        Integer(0),
        "The recovery point wanted: how many seconds of records may be lost in a failover. `twinlog status` and the "
        "status task show what is measured against it, and fail where it is missed.",
        section=_RUNNING,
    )
    recovery_time_seconds: int | None = setting(
        "recovery.time.seconds",
        None,
        Integer(0),
        "The recovery time wanted: seconds from the decision to fail over until groups can read. The last drill, or "
        "takeover, is held against it, in the same places.",
        section=_RUNNING,
    )
