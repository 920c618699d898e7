"""One flow of a topology, and how to reach what it needs: its clusters, by Airflow's connections or without, and its
ledger."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from twinlog.cluster.access import ClusterAccess
    from twinlog.cluster.secrets import ConnectionLookup
    from twinlog.ledger.store import Ledger
    from twinlog.model.topology import Flow, Topology
    from twinlog.operations.run_scope import Ends


class FlowReach:
    """Clients are imported when they are asked for: `--help` and the parsing of a DAG stay quick."""

    def __init__(self, topology: Topology, flow: Flow, connections: ConnectionLookup | None = None) -> None:
        """`connections` answers the client properties of a cluster's `connection`; without it, the environment does."""
        self.topology = topology
        self.flow = flow
        self._connections = connections

    def opposite(self) -> Self | None:
        """The same for the flow the other way, if the topology has one that is enabled."""
        other = self.topology.flows.get(f"{self.flow.target}->{self.flow.source}")
        if other is None or not other.enabled:
            return None
        found = copy.copy(self)
        found.flow = other
        return found

    def access(self, side: str, role: str = "admin") -> ClusterAccess:
        from twinlog.cluster.access import flow_access  # noqa: PLC0415 - brings the Kafka clients

        return flow_access(self.topology, self.flow, side, role, connections=self._connections)

    def ends(self) -> Ends:
        from twinlog.operations.run_scope import Ends  # noqa: PLC0415 - as above

        return Ends(
            source=self.access("source"),
            target=self.access("target"),
            reading=self.access("source", "consumer"),
            writing=self.access("target", "producer"),
        )

    def ledger(self) -> Ledger:
        from twinlog.ledger.store import Ledger  # noqa: PLC0415 - brings pyarrow

        return Ledger(self.topology.ledger_for(self.flow), self.flow.source, self.flow.target)
