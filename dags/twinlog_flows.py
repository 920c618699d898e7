"""The DAGs of every flow in the topology. Wiring only: which operation runs when; the operations do the work.

Airflow parses this file every few seconds, so it reads one YAML file and imports neither Spark nor a Kafka client. A
topology that cannot be used raises here, which Airflow shows as one import error with the file's name and line.
"""

from __future__ import annotations

from datetime import timedelta

from twinlog.airflow.frame import flow_dag
from twinlog.airflow.ids import dag_ids
from twinlog.airflow.settings import topology_path
from twinlog.airflow.tasks import status
from twinlog.intake.topology_file import load

topology = load(topology_path())

for flow_name, dag_id in dag_ids("status", topology.flows).items():
    if not topology.flow(flow_name).enabled:
        continue
    with flow_dag(
        dag_id,
        "status",
        topology,
        topology.flow(flow_name),
        summary="Reaches both clusters of the flow and shows what is there; fails where one cannot be reached.",
        run_timeout=timedelta(minutes=10),
    ) as dag:
        status(flow_name)
    globals()[dag_id] = dag
