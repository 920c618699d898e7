"""The lease of a flow: of several who would run it at once, one does.

A lease is short, and the run that holds it renews it from a thread for as long as its process lives, so a run that was
killed is in nobody's way for longer than `LEASE_S`. A run of the same id, as when a scheduler tries again, does not
wait at all, and an earlier try that still lives neither renews nor gives back what is no longer its own. The clocks of
two hosts decide only who waits: a holder that was overtaken, because it hung or its clock is wrong, is fenced before
the new one reads a position.

Keeping the lease has no say in what becomes of a run. A target that can't be reached to give it back costs the next run
some waiting, and this one a warning.

Taking the lease settles the flow's lanes too, in this order:

    1  the record says who runs and how many lanes there are, and how many of an older layout are not fenced yet
    2  every lane of both layouts is fenced, and what a killed run left open is rolled back
    3  the record says that the older layout is gone

A run that dies between two steps leaves a record from which the next one does the same again.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.fencing import fence_lanes
from twinlog.cluster.flow_store import FlowStore
from twinlog.cluster.raw import RawClient
from twinlog.errors import NotAuthorizedError, TwinlogError
from twinlog.model.description import Description, adopted, why_not
from twinlog.model.flow_state import FlowRecord, Holder, Lease, State
from twinlog.model.lanes import state_topic
from twinlog.model.topology import Flow

LEASE_S = 30.0
RENEWALS_A_LEASE = 3
GIVEN_BACK_WITHIN_S = 15.0

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Held:
    """The flow's record with our lease on it, or the reason why there is none."""

    holder: Holder
    record: FlowRecord
    refused: str | None = None


@contextmanager
def held(
    flow: Flow,
    access: ClusterAccess,
    target: RawClient,
    run: str,
    *,
    lease_s: float = LEASE_S,
    ours: Description | None = None,
    state: State = State.ACTIVE,
    migration: str | None = None,
) -> Iterator[Held]:
    """Hold the lease for `run` inside the block; `target` and `access` are of the target cluster, and `ours` is how
    this site describes the flow, which must not differ from what holds there. The flow must be in `state`. A run that
    is part of a `migration` leaves the flow's rate as it is there."""
    store = flow_store(flow, target)
    # The try as well as the run: process ids come again, in a container that is started again above all.
    holder = Holder(run, f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}")
    answer = _take(flow, store, target, holder, lease_s, ours, state, migration)
    if answer.refused is not None:
        yield answer
        return
    with kept(flow, access, holder, lease_s):
        yield _settle_lanes(flow, store, target, answer)


def reason_to_wait(flow: Flow, seen: FlowRecord, run: str, ours: Description) -> str | None:
    """Why `run` would not get the lease now, in a sentence; None where it would."""
    taken = seen.leased_by(Lease(run, "", 0), _now_ms()) is None
    differs = why_not(seen.description, ours, flow.name) is not None
    waits = seen.reason_to_wait(flow.name, None) is not None
    return _reason(flow, seen, ours) if taken or differs or waits or seen.state is not State.ACTIVE else None


def flow_store(flow: Flow, target: RawClient) -> FlowStore:
    return FlowStore(target, flow.name, state_topic(flow.source, flow.target))


def _take(  # noqa: PLR0917 - who wants the lease of what, each once
    flow: Flow,
    store: FlowStore,
    target: RawClient,
    holder: Holder,
    lease_s: float,
    ours: Description | None,
    state: State,
    migration: str | None,
) -> Held:
    seen = FlowRecord()

    def decide(found: FlowRecord) -> FlowRecord | None:
        nonlocal seen
        seen = found
        if found.state is not state or found.reason_to_wait(flow.name, migration) is not None:
            return None
        leased = found.leased_by(_lease(holder, lease_s), _now_ms())
        if leased is None:
            return None
        if ours is not None:
            if why_not(found.description, ours, flow.name) is not None:
                return None
            leased = replace(leased, description=adopted(found.description, ours))
        laid_out = leased.laid_out(flow.lanes)
        if migration is not None:
            return laid_out
        return replace(laid_out, throttle_bytes_per_s=int((flow.throttle or 0) * 1_000_000))

    record = target.run(store.change(decide))
    if record is not None:
        return Held(holder, record)
    return Held(holder, seen, _reason(flow, seen, ours, migration))


def _settle_lanes(flow: Flow, store: FlowStore, target: RawClient, taken: Held) -> Held:
    """Fence every lane, those of an older layout included, and note that those are gone."""
    record = taken.record
    try:
        target.run(fence_lanes(target, flow.name, max(record.lanes, record.retiring_lanes)))
    except NotAuthorizedError:
        # A lane that may not be written to has no writer of ours; the lane itself says so, and the others go on.
        if record.retiring_lanes:
            raise
    if not record.retiring_lanes:
        return taken
    seen = record

    def decide(found: FlowRecord) -> FlowRecord | None:
        nonlocal seen
        seen = found
        return replace(found, retiring_lanes=0) if found.reason_to_stop(taken.holder, flow.name) is None else None

    settled = target.run(store.change(decide))
    if settled is None:
        return replace(taken, record=seen, refused=_reason(flow, seen))
    return replace(taken, record=settled)


@contextmanager
def kept(flow: Flow, access: ClusterAccess, holder: Holder, lease_s: float) -> Iterator[None]:
    """Renew the lease from a thread while the block runs and `holder` has it, and give it back at the end."""
    over = threading.Event()
    keeping = threading.Thread(target=_keep, args=(flow, access, holder, lease_s, over), name="lease", daemon=True)
    keeping.start()
    try:
        yield
    finally:
        over.set()
        keeping.join(GIVEN_BACK_WITHIN_S)
        if keeping.is_alive():
            _LOG.warning(
                "%s: cluster %s did not take back the lease of %s within %.0f s; it ends by itself %.0f s after it was "
                "last renewed",
                flow.name,
                flow.target,
                holder,
                GIVEN_BACK_WITHIN_S,
                lease_s,
            )


def _keep(flow: Flow, access: ClusterAccess, holder: Holder, lease_s: float, over: threading.Event) -> None:
    def renewed(found: FlowRecord) -> FlowRecord | None:
        # Of a flow that was paused, too: its lanes finish what they have, and whoever drains it waits for that.
        return replace(found, lease=_lease(holder, lease_s)) if found.is_leased_to(holder) else None

    def change(decide: Callable[[FlowRecord], FlowRecord | None]) -> FlowRecord | None:
        # A connection a change: few enough, and none is left half-dead by a broker's restart.
        with access.raw(timeout_s=lease_s) as target:
            return target.run(flow_store(flow, target).change(decide))

    while not over.wait(lease_s / RENEWALS_A_LEASE):
        try:
            record = change(renewed)
        except TwinlogError as failure:
            # The next try may succeed; if none does, another run may take over, and this one is fenced by it.
            _LOG.warning("%s: the lease of %s was not renewed: %s", flow.name, holder, failure)
            continue
        if record is None:
            _LOG.warning("%s: %s no longer holds the lease; its lanes stop at their next write", flow.name, holder)
            return
    try:
        change(lambda found: found.released_by(holder))
    except TwinlogError as failure:
        _LOG.warning(
            "%s: the lease of %s was not given back; it ends by itself %.0f s after it was last renewed: %s",
            flow.name,
            holder,
            lease_s,
            failure,
        )


def _lease(holder: Holder, lease_s: float) -> Lease:
    return Lease(holder.run, holder.owner, _now_ms() + int(lease_s * 1000))


def _now_ms() -> int:
    return int(time.time() * 1000)


def _reason(flow: Flow, seen: FlowRecord, ours: Description | None = None, migration: str | None = None) -> str:
    if seen.state is not State.ACTIVE:
        return f"{flow.name} is {seen.state}; nothing was copied"
    if (waits := seen.reason_to_wait(flow.name, migration)) is not None:
        return f"{waits}; nothing was copied"
    if ours is not None and (differs := why_not(seen.description, ours, flow.name)) is not None:
        return f"{differs}; nothing was copied"
    if seen.lease is None:
        return f"{flow.name} could not be leased; nothing was copied"
    return f"{seen.lease.holder} holds {flow.name}; nothing was copied"
