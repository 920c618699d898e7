"""What every command about one flow begins with: the topology, the flow, its clients and its ledger."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twinlog.cluster.access import ClusterAccess
    from twinlog.ledger.store import Ledger
    from twinlog.model.topology import Flow, Topology
    from twinlog.operations.mirror import Ends


class FlowContext:
    """One flow of the topology that the command names."""

    def __init__(self, asked: argparse.Namespace) -> None:
        from twinlog.intake.topology_file import load  # noqa: PLC0415 - keeps --help quick

        self.topology: Topology = load(asked.topology)
        self.flow: Flow = self.topology.flow(asked.flow)

    def access(self, side: str, role: str = "admin") -> ClusterAccess:
        from twinlog.cluster.access import flow_access  # noqa: PLC0415 - brings the Kafka clients

        return flow_access(self.topology, self.flow, side, role)

    def ends(self) -> Ends:
        from twinlog.operations.mirror import Ends  # noqa: PLC0415 - as above

        return Ends(
            source=self.access("source"),
            target=self.access("target"),
            reading=self.access("source", "consumer"),
            writing=self.access("target", "producer"),
        )

    def ledger(self) -> Ledger:
        from twinlog.ledger.store import Ledger  # noqa: PLC0415 - brings pyarrow

        return Ledger(self.topology.ledger_for(self.flow), self.flow.source, self.flow.target)
