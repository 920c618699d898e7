"""The frame that every DAG of a flow shares: tags, drawing, time limits, and what is tried again.

What always holds: a DAG has one active run and never catches up; an error is tried again only if its class
says that this can help.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, ExceptionRetryPolicy, RetryAction, RetryRule

from twinlog.errors import TwinlogError

if TYPE_CHECKING:
    from twinlog.model.topology import Flow, Topology

OWNER = "twinlog"


def flow_dag(
    dag_id: str,
    verb: str,
    topology: Topology,
    flow: Flow,
    *,
    summary: str,
    run_timeout: timedelta,
    schedule: str | None = None,
) -> DAG:
    """An empty DAG for one verb of one flow; the caller puts its tasks in."""
    default_args: dict[str, Any] = {
        "owner": OWNER,
        "retries": 2,
        "retry_delay": timedelta(seconds=30),
        "retry_policy": retry_policy(),
    }
    queue = topology.queue_for(flow)
    if queue is not None:
        default_args["queue"] = queue
    return DAG(
        dag_id=dag_id,
        dag_display_name=f"{verb} {flow.name}",
        description=summary,
        doc_md=flow_doc(topology, flow, summary),
        tags=["twinlog", verb, f"source:{flow.source}", f"target:{flow.target}"],
        schedule=schedule,
        catchup=False,
        max_active_runs=1,
        dagrun_timeout=run_timeout,
        default_args=default_args,
    )


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
