"""Changing a flow's rate while it runs: the rate is kept on the target, where its tasks look every few seconds."""

from __future__ import annotations

from dataclasses import replace

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.flow_store import FlowStore
from twinlog.errors import FlowStateError
from twinlog.model.flow_state import FlowRecord
from twinlog.model.lanes import state_topic
from twinlog.model.topology import Flow

BYTES_A_MB = 1_000_000


def change_throttle(flow: Flow, access: ClusterAccess, rate: float | None) -> float | None:
    """Let all tasks together write `rate` MB a second from now on, None as fast as it goes; what it was before."""
    before: float | None = None

    def decide(found: FlowRecord) -> FlowRecord:
        nonlocal before
        before = found.throttle_bytes_per_s / BYTES_A_MB or None
        return replace(found, throttle_bytes_per_s=int((rate or 0) * BYTES_A_MB))

    with access.raw() as target:
        topic = state_topic(flow.source, flow.target)
        known = target.run(target.metadata([topic])).topics.get(topic)
        if known is None or known.error is not None:
            raise FlowStateError(
                f"{flow.name} has never run, so there is nothing to throttle; set `throttle` in the file"
            )
        target.run(FlowStore(target, flow.name, topic).change(decide))
    return before
