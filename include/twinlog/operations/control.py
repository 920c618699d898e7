"""A person's hand on a flow: pause it, let it go on, or drain it.

    pause    no run starts any more; one that is under way commits what it has and ends
    drain    the same, and waits until nothing of the flow writes to the target any more
    resume   runs start again

The state is kept on the target, so that it holds for every scheduler, and for the command line.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.fencing import fence_lanes
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import principal_of
from twinlog.errors import FlowStateError, NotAuthorizedError
from twinlog.model.flow_state import FlowRecord, State
from twinlog.model.lanes import state_topic
from twinlog.model.topology import Flow
from twinlog.operations.internal_topics import create_small_topic
from twinlog.operations.lease import flow_store

DRAINED_WITHIN_S = 600.0
LOOK_EVERY_S = 0.5

_NOT_KEPT = "the flow's state can't be kept"


class Action(StrEnum):
    """What a person may ask for."""

    PAUSE = "pause"
    RESUME = "resume"
    DRAIN = "drain"


_LEADS_TO = {Action.PAUSE: State.PAUSED, Action.DRAIN: State.PAUSED, Action.RESUME: State.ACTIVE}
_ALLOWED = frozenset({State.ACTIVE, State.PAUSED})
"""Of a flow that has failed over, only its way back decides."""


@dataclass(frozen=True, slots=True)
class ControlResult:
    """What was asked for, and what came of it."""

    flow: str
    action: Action
    before: State
    state: State
    run: str | None = None
    """The run that was under way then."""
    seconds: float = 0.0

    @property
    def sentence(self) -> str:
        changed = f"{self.flow} is {self.state}" if self.state is not self.before else f"{self.flow} was {self.state}"
        if self.action is Action.DRAIN:
            return f"{changed} and drained in {self.seconds:.1f} s: nothing of it writes any more"
        if self.action is Action.PAUSE and self.run is not None:
            return f"{changed}; run {self.run} commits what it has and ends"
        return changed

    def to_json(self) -> dict[str, Any]:
        return {
            "flow": self.flow,
            "action": str(self.action),
            "before": str(self.before),
            "state": str(self.state),
            "run": self.run,
            "seconds": round(self.seconds, 3),
        }


def control(flow: Flow, access: ClusterAccess, action: Action, *, timeout_s: float = DRAINED_WITHIN_S) -> ControlResult:
    """Do it; `access` is of the target, and the time-out is for draining."""
    started = time.monotonic()
    with access.raw() as target:
        before, after = _move(flow, access, target, _LEADS_TO[action])
        run = after.lease.run if after.lease is not None and after.lease.holds(_now_ms()) else None
        if action is Action.DRAIN:
            _await_end(flow, target, started + timeout_s)
    return ControlResult(flow.name, action, before, after.state, run, time.monotonic() - started)


def _move(flow: Flow, access: ClusterAccess, target: RawClient, state: State) -> tuple[State, FlowRecord]:
    """The state before, and the record after the change."""
    principal, topic = principal_of(access.settings), state_topic(flow.source, flow.target)
    target.run(create_small_topic(target, principal, topic, flow.journal_topic_replication_factor, _NOT_KEPT))
    before = State.ACTIVE

    def decide(found: FlowRecord) -> FlowRecord:
        nonlocal before
        before = found.state
        _demand(flow, found.state, _ALLOWED)
        return found.moved_to(state, flow.name)

    after = target.run(flow_store(flow, target).change(decide))
    return before, after or FlowRecord(state)


def _demand(flow: Flow, state: State, allowed: Collection[State]) -> None:
    if state not in allowed:
        raise FlowStateError(
            f"{flow.name} is {state}, so it can neither be paused nor resumed; it goes on with `twinlog failback`"
        )


def _await_end(flow: Flow, target: RawClient, deadline: float) -> None:
    """Until the run that was under way has given its lease back, or has let it expire; then nobody of it is left."""
    store = flow_store(flow, target)
    record = target.run(store.read())
    while record.lease is not None and record.lease.holds(_now_ms()):
        if time.monotonic() > deadline:
            raise FlowStateError(
                f"{flow.name} is paused, and {record.lease.holder} has not ended yet; it stops by itself once it sees "
                "that. Drain again to wait for it"
            )
        target.run(target.pause(LOOK_EVERY_S))
        record = target.run(store.read())
    try:
        # One that hung, or whose task does, must not write after this has said that nobody does.
        target.run(fence_lanes(target, flow.name, max(record.lanes, record.retiring_lanes)))
    except NotAuthorizedError:
        # A lane that we may not write to, no run of ours writes to either.
        return
    if record.lease is not None:
        holder = record.lease.holder
        target.run(store.change(lambda found: found.released_by(holder)))


def _now_ms() -> int:
    return int(time.time() * 1000)
