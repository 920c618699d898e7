"""What every command about one flow begins with: the topology, the flow, its clients and its ledger."""

from __future__ import annotations

import argparse

from twinlog.operations.flow_reach import FlowReach


class FlowContext(FlowReach):
    """One flow of the topology that the command names."""

    def __init__(self, asked: argparse.Namespace) -> None:
        from twinlog.intake.topology_file import load  # noqa: PLC0415 - keeps --help quick

        topology = load(asked.topology)
        super().__init__(topology, topology.flow(asked.flow))
