"""The frame that every DAG of a flow shares: id, tags, drawing, time limits, pool, and what is tried again.

What always holds: a DAG has one active run and never catches up; an error is tried again only if its class
says that this can help; a DAG file makes only the DAG that Airflow wants of it, where it runs a task of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import (
    DAG,
    CronDataIntervalTimetable,
    ExceptionRetryPolicy,
    RetryAction,
    RetryRule,
    get_parsing_context,
)

from twinlog.airflow.ids import dag_ids
from twinlog.airflow.notices import FailureNotifier
from twinlog.airflow.topology import topology_in_use
from twinlog.errors import TwinlogError

if TYPE_CHECKING:
    from airflow.sdk import Param

    from twinlog.model.topology import Flow, Topology

OWNER = "twinlog"
CONTINUOUS = "@continuous"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
"""Where every DAG starts. Without it the first run of a continuous DAG has an empty interval, and Airflow takes the
next one for a run that exists, for ever."""
NO_POOL = "default_pool"
"""Of tasks that put no load on a cluster, and of flows whose clusters name no pool."""

Maker = Callable[["Topology", "Flow"], "DAG | None"]
"""Makes one verb's DAG of a flow, with `flow_dag`; None where the flow is to have none."""


def dags_of_flows(**makers: Maker) -> dict[str, DAG]:
    """The DAGs of every enabled flow of the topology, by id: `globals().update(dags_of_flows(mirror=...))`."""
    try:
        topology = topology_in_use()
    except TwinlogError:
        # There never was a good one; dags/twinlog_topology.py says what is wrong, and once is enough.
        return {}
    wanted = get_parsing_context().dag_id
    made = {}
    for verb, maker in makers.items():
        for name, dag_id in dag_ids(verb, topology.flows).items():
            flow = topology.flow(name)
            if flow.enabled and wanted in (None, dag_id) and (dag := maker(topology, flow)) is not None:
                made[dag_id] = dag
    return made


def flow_dag(
    verb: str,
    topology: Topology,
    flow: Flow,
    *,
    summary: str,
    run_timeout: timedelta,
    schedule: str | timedelta | None = None,
    params: Mapping[str, Param] | None = None,
    by_hand: bool = False,
    tell_failures: bool = True,
) -> DAG:
    """An empty DAG for one verb of one flow; the caller puts its tasks in.

    `params` are the fields of the form that people see who trigger it. A DAG that only runs `by_hand` need not be
    unpaused first. A task that fails for good is told to those who are told of things (see `airflow.notices`), unless
    the DAG tells what it finds itself.
    """
    default_args: dict[str, Any] = {
        "owner": OWNER,
        "retries": 2,
        "retry_delay": timedelta(seconds=30),
        "retry_policy": retry_policy(),
        "pool": topology.pool_for(flow) or NO_POOL,
    }
    if tell_failures:
        default_args["on_failure_callback"] = FailureNotifier(flow.name)
    queue = topology.queue_for(flow)
    if queue is not None:
        default_args["queue"] = queue
    return DAG(
        dag_id=dag_ids(verb, topology.flows)[flow.name],
        dag_display_name=f"{verb} {flow.name}",
        description=summary,
        doc_md=flow_doc(topology, flow, summary),
        tags=["twinlog", verb, f"source:{flow.source}", f"target:{flow.target}"],
        schedule=timetable(schedule) if isinstance(schedule, str) else schedule,
        start_date=LONG_AGO,
        catchup=False,
        max_active_runs=1,
        dagrun_timeout=run_timeout,
        default_args=default_args,
        params=dict(params or {}),
        is_paused_upon_creation=False if by_hand else None,
    )


def timetable(schedule: str) -> str | CronDataIntervalTimetable:
    """A schedule of the topology as Airflow is to understand it.

    Runs with intervals, whatever `create_cron_data_intervals` says: where the last run has none, a flow that is changed
    to `@continuous` would wait for ever for a run that Airflow takes for one that exists.
    """
    return schedule if schedule == CONTINUOUS else CronDataIntervalTimetable(schedule, timezone="UTC")


def retry_policy() -> ExceptionRetryPolicy:
    """Tries again what `retriable` says can succeed; all else, an error not ours too, fails at once."""
    return ExceptionRetryPolicy(
        rules=[
            RetryRule(exception=kind, match_subclasses=False, reason=f"{kind.__name__} may pass")
            for kind in _error_classes(TwinlogError)
            if kind.retriable
        ],
        default=RetryAction.FAIL,
    )


def flow_doc(topology: Topology, flow: Flow, summary: str) -> str:
    """What a person sees above the DAG: one sentence and a drawing of the flow."""
    source, target = topology.clusters[flow.source], topology.clusters[flow.target]
    left = _box(source.alias, source.bootstrap_servers)
    right = _box(target.alias, target.bootstrap_servers)
    arrow = f"---- {flow.naming} ---->"
    middle = [" " * len(arrow), arrow, " " * len(arrow), " " * len(arrow)]
    drawing = "\n".join("  ".join(parts).rstrip() for parts in zip(left, middle, right, strict=True))
    return f"### {flow.name}\n{summary}\n\n```\n{drawing}\n```\nDescribed in `{topology.path}`.\n"


def _box(title: str, text: str) -> list[str]:
    # A list of brokers is cut: the drawing says which cluster is meant, the topology says how it is reached.
    text = text if len(text) <= 40 else text[:37] + "..."
    width = max(len(title), len(text))
    edge = "+" + "-" * (width + 2) + "+"
    return [edge, f"| {title:<{width}} |", f"| {text:<{width}} |", edge]


def _error_classes(root: type[TwinlogError]) -> Iterator[type[TwinlogError]]:
    yield root
    for child in root.__subclasses__():
        yield from _error_classes(child)
