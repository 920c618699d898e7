"""The DAGs that look after every flow in the topology between its runs.

Airflow parses this file every few seconds and before each of its tasks, so it reads one YAML file and imports neither
Spark nor a Kafka client.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from twinlog.airflow.frame import dags_of_flows, flow_dag
from twinlog.airflow.tasks import upkeep
from twinlog.airflow.tasks.status import status as look

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from twinlog.model.topology import Flow, Topology

LEAST_INTERVAL_S = 60
"""Airflow starts no task every second; what a flow wants more often, its runs do."""


def status(topology: Topology, flow: Flow) -> DAG:
    """What is there, and how far behind."""
    with flow_dag(
        "status",
        topology,
        flow,
        summary="Reaches both clusters of the flow and shows what is there and how far behind it is; fails where one "
        "cannot be reached.",
        schedule=flow.status_schedule,
        run_timeout=timedelta(minutes=10),
        tell_failures=False,
    ) as dag:
        look(flow.name)
    return dag


def sync(topology: Topology, flow: Flow) -> DAG:
    """Topics, settings and permissions, as often as the flow says."""
    intervals = [flow.sync_topic_configs_interval_seconds] if flow.sync_topic_configs_enabled else []
    intervals += [flow.sync_topic_acls_interval_seconds] if flow.sync_topic_acls_enabled else []
    with flow_dag(
        "sync",
        topology,
        flow,
        summary="Keeps topics, partitions, settings and permissions on the target in step with the source.",
        schedule=_every(min(intervals)) if intervals else None,
        run_timeout=timedelta(hours=1),
        params=upkeep.sync_params(),
    ) as dag:
        upkeep.sync(flow.name)
    return dag


def heartbeat(topology: Topology, flow: Flow) -> DAG | None:
    """A sign of life, as often as the flow says."""
    if not flow.emit_heartbeats_enabled:
        return None
    with flow_dag(
        "heartbeat",
        topology,
        flow,
        summary="Writes a sign of life to the source; its age on the target is the flow's measured recovery point.",
        schedule=_every(flow.emit_heartbeats_interval_seconds),
        run_timeout=timedelta(minutes=5),
    ) as dag:
        upkeep.heartbeat(flow.name)
    return dag


def canary(topology: Topology, flow: Flow) -> DAG | None:
    """Marked records, by hand or as the flow says."""
    if not flow.canary_enabled:
        return None
    with flow_dag(
        "canary",
        topology,
        flow,
        summary="Sends marked records through a real run; fails where they do not arrive as they were sent.",
        schedule=flow.canary_schedule,
        run_timeout=timedelta(minutes=15),
        by_hand=flow.canary_schedule is None,
    ) as dag:
        upkeep.canary(flow.name)
    return dag


def compact(topology: Topology, flow: Flow) -> DAG:
    """A ledger that stays small."""
    with flow_dag(
        "compact",
        topology,
        flow,
        summary="Merges the files of the flow's ledger, and drops from ledger and journal what both clusters have long "
        "dropped.",
        schedule="@daily",
        run_timeout=timedelta(hours=2),
    ) as dag:
        upkeep.compact(flow.name)
    return dag


def _every(seconds: int) -> timedelta:
    return timedelta(seconds=max(seconds, LEAST_INTERVAL_S))


globals().update(dags_of_flows(status=status, sync=sync, heartbeat=heartbeat, canary=canary, compact=compact))
