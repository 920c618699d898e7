"""What every task about one flow begins with: the flow as the topology has it now, reached by Airflow's connections.

Every secret that is looked up for it is masked in the task's log, and in its supervisor's.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from twinlog.airflow.connections import kafka_properties
from twinlog.airflow.topology import topology_in_use
from twinlog.model.references import is_secret
from twinlog.operations.flow_reach import FlowReach

if TYPE_CHECKING:
    from twinlog.cluster.access import ClusterAccess
    from twinlog.model.topology import Flow, Topology

RESULT_KEY = "return_value"
"""Where Airflow keeps what a task returns."""


class TaskReach(FlowReach):
    """One flow of the topology in use."""

    def __init__(self, flow_name: str) -> None:
        topology = topology_in_use()
        super().__init__(topology, topology.flow(flow_name), kafka_properties)

    def of(self, topology: Topology, flow: Flow) -> TaskReach:
        """The same for another flow between the same clusters, of a topology that has it."""
        other = copy(self)
        other.topology, other.flow = topology, flow
        return other

    def access(self, side: str, role: str = "admin") -> ClusterAccess:
        from airflow.sdk.log import mask_secret  # noqa: PLC0415 - no matter of parsing a DAG

        found = super().access(side, role)
        for name, value in found.settings.items():
            if is_secret(name):
                mask_secret(value)
        return found
