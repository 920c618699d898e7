"""One DAG a flow that proves the twin equal, as often as `reconcile.schedule` says; by hand with a form."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from twinlog.airflow.frame import dags_of_flows, flow_dag
from twinlog.airflow.tasks.reconcile import OtherFailures, reconcile_params
from twinlog.airflow.tasks.reconcile import reconcile as compare

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from twinlog.model.topology import Flow, Topology


def reconcile(topology: Topology, flow: Flow) -> DAG:
    """Both logs compared by the ledger; a difference fails the run, and is told."""
    with flow_dag(
        "reconcile",
        topology,
        flow,
        summary="Proves that the target equals the source, or says which records differ; each run looks at what is new "
        "and at a share of the rest.",
        schedule=flow.reconcile_schedule,
        run_timeout=timedelta(hours=2),
        params=reconcile_params(),
        tell_failures=False,
    ) as dag:
        compare.override(on_failure_callback=OtherFailures(flow.name))(flow.name)
    return dag


globals().update(dags_of_flows(reconcile=reconcile))
