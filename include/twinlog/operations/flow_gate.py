"""Whether an operation may change anything for a flow now, by what the target keeps of it: its state, and by which
description it runs.

Asked by everything that writes, since a scheduler that was cut off has heard of no failover, no pause and no other
site's changes.
"""

from __future__ import annotations

from collections.abc import Collection

from twinlog.cluster.flow_store import FlowStore
from twinlog.cluster.raw import RawClient
from twinlog.model.description import Description, why_not
from twinlog.model.flow_state import FlowRecord, State
from twinlog.model.lanes import state_topic
from twinlog.model.topology import Flow

SOURCE_LEADS = frozenset({State.ACTIVE, State.PAUSED})
"""While the flow has not failed over."""


async def record_of(flow: Flow, target: RawClient) -> FlowRecord:
    """What the target keeps of the flow; that of a flow that was never heard of where it keeps nothing."""
    topic = state_topic(flow.source, flow.target)
    if (await target.metadata([topic])).topics[topic].is_missing:
        return FlowRecord()
    return await FlowStore(target, flow.name, topic).read()


def reason_to_leave(
    flow: Flow, record: FlowRecord, ours: Description | None, states: Collection[State] = (State.ACTIVE,)
) -> str | None:
    """Why the flow is to be left alone, in a sentence without its end; None where it is in one of these states and runs
    by our description."""
    if record.state not in states:
        return f"{flow.name} is {record.state}"
    return None if ours is None else why_not(record.description, ours, flow.name)
