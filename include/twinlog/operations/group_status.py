"""How ready the groups of flows are, for `status`: looked at now where that is asked for and both clusters answer, and
otherwise as the last pass left it beside the ledger."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence

from twinlog.cluster.access import ClusterAccess
from twinlog.errors import LedgerError, TwinlogError
from twinlog.ledger.store import Ledger
from twinlog.model.topology import Flow, Topology
from twinlog.operations.asking import ask_all
from twinlog.operations.checkpoint import Checkpointing
from twinlog.operations.readiness import Readiness, ReadinessTables
from twinlog.operations.storage import storage_of


def readiness_of_flows(
    topology: Topology,
    flows: Sequence[Flow],
    accesses: Callable[[Flow, str], ClusterAccess],
    fresh: Collection[str],
    timeout_s: float,
) -> tuple[dict[str, Readiness], dict[str, TwinlogError]]:
    """By flow, those of `fresh` looked at now, within the time-out, and what kept us from that; a flow of which nothing
    is known is left out."""
    ledgers = {flow.name: Ledger(topology.ledger_for(flow), flow.source, flow.target) for flow in flows}
    questions = {
        flow.name: functools.partial(_look, topology, flow, accesses, ledgers[flow.name])
        for flow in flows
        if flow.name in fresh
    }
    now = ask_all(questions, timeout_s, lambda name: f"the groups of {name}")
    found = {name: answer for name, answer in now.items() if isinstance(answer, Readiness)}
    problems = {name: answer for name, answer in now.items() if isinstance(answer, TwinlogError)}
    for name, ledger in ledgers.items():
        if name in found:
            continue
        unreadable: list[str] = []
        last = ReadinessTables(ledger).last(unreadable)
        if unreadable:
            problems[name] = LedgerError("; ".join(unreadable))
        if last is not None:
            found[name] = last
    return found, problems


def _look(topology: Topology, flow: Flow, accesses: Callable[[Flow, str], ClusterAccess], ledger: Ledger) -> Readiness:
    with storage_of(f"the ledger of {flow.name}"):
        return Checkpointing(topology, flow, accesses(flow, "source"), accesses(flow, "target"), ledger).look()
