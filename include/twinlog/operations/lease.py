"""The lease of a flow: of several who would run it at once, one does.

A lease is short, and the run that holds it renews it from a thread for as long as its process lives, so a run that was
killed is in nobody's way for longer than `LEASE_S`. A run of the same id, as when a scheduler tries again, does not
wait at all, and an earlier try that still lives neither renews nor gives back what is no longer its own. The clocks of
two hosts decide only who waits: a holder that was overtaken, because it hung or its clock is wrong, is fenced before
the new one reads a position.

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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.fencing import fence_lanes
from twinlog.cluster.flow_store import FlowStore
from twinlog.cluster.raw import RawClient
from twinlog.errors import NotAuthorizedError, TwinlogError
from twinlog.model.flow_state import FlowRecord, Lease, State
from twinlog.model.lanes import state_topic
from twinlog.model.topology import Flow

LEASE_S = 30.0
RENEWALS_A_LEASE = 3

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Held:
    """The flow's record with our lease on it, or the reason why there is none."""

    record: FlowRecord
    refused: str | None = None


@contextmanager
def held(flow: Flow, access: ClusterAccess, target: RawClient, run: str, *, lease_s: float = LEASE_S) -> Iterator[Held]:
    """Hold the lease for `run` inside the block; `target` and `access` are of the target cluster."""
    store = flow_store(flow, target)
    answer = _take(flow, store, target, run, lease_s)
    if answer.refused is not None:
        yield answer
        return
    try:
        with _renewed(flow, access, run, lease_s):
            yield _settle_lanes(flow, store, target, run, answer.record)
    finally:
        target.run(store.change(lambda found: found.released_by(run) if _is_ours(found, run) else found))


def flow_store(flow: Flow, target: RawClient) -> FlowStore:
    return FlowStore(target, flow.name, state_topic(flow.source, flow.target))


def _take(flow: Flow, store: FlowStore, target: RawClient, run: str, lease_s: float) -> Held:
    seen = FlowRecord()

    def decide(found: FlowRecord) -> FlowRecord | None:
        nonlocal seen
        seen = found
        if found.state is not State.ACTIVE:
            return None
        leased = found.leased_by(_lease(run, lease_s), _now_ms())
        if leased is None:
            return None
        return replace(leased.laid_out(flow.lanes), throttle_bytes_per_s=int((flow.throttle or 0) * 1_000_000))

    record = target.run(store.change(decide))
    if record is not None:
        return Held(record)
    return Held(seen, _reason(flow, seen))


def _settle_lanes(flow: Flow, store: FlowStore, target: RawClient, run: str, record: FlowRecord) -> Held:
    """Fence every lane, those of an older layout included, and note that those are gone."""
    try:
        target.run(fence_lanes(target, flow.name, max(record.lanes, record.retiring_lanes)))
    except NotAuthorizedError:
        # A lane that may not be written to has no writer of ours; the lane itself says so, and the others go on.
        if record.retiring_lanes:
            raise
    if not record.retiring_lanes:
        return Held(record)
    seen = record

    def decide(found: FlowRecord) -> FlowRecord | None:
        nonlocal seen
        seen = found
        return replace(found, retiring_lanes=0) if _may_go_on(found, run) else None

    settled = target.run(store.change(decide))
    return Held(seen, _reason(flow, seen)) if settled is None else Held(settled)


@contextmanager
def _renewed(flow: Flow, access: ClusterAccess, run: str, lease_s: float) -> Iterator[None]:
    """Renew the lease from a thread until the block ends or the lease is another's."""
    over = threading.Event()
    renewing = threading.Thread(
        target=_keep_renewing, args=(flow, access, run, lease_s, over), name="lease", daemon=True
    )
    renewing.start()
    try:
        yield
    finally:
        over.set()
        renewing.join()


def _keep_renewing(flow: Flow, access: ClusterAccess, run: str, lease_s: float, over: threading.Event) -> None:
    def decide(found: FlowRecord) -> FlowRecord | None:
        return replace(found, lease=_lease(run, lease_s)) if _may_go_on(found, run) else None

    while not over.wait(lease_s / RENEWALS_A_LEASE):
        try:
            # A connection a renewal: few enough, and none is left half-dead by a broker's restart.
            with access.raw(timeout_s=lease_s) as target:
                kept = target.run(flow_store(flow, target).change(decide))
        except TwinlogError as failure:
            # The next try may succeed; if none does, another run may take over, and this one is fenced by it.
            _LOG.warning("%s: the lease of run %s was not renewed: %s", flow.name, run, failure)
            continue
        if kept is None:
            _LOG.warning("%s: run %s no longer holds the lease; its lanes stop at their next write", flow.name, run)
            return


def _lease(run: str, lease_s: float) -> Lease:
    return Lease(run, _owner(), _now_ms() + int(lease_s * 1000))


def _owner() -> str:
    return f"{socket.gethostname()}/{os.getpid()}"


def _may_go_on(record: FlowRecord, run: str) -> bool:
    return record.state is State.ACTIVE and _is_ours(record, run)


def _is_ours(record: FlowRecord, run: str) -> bool:
    return record.lease is not None and (record.lease.run, record.lease.owner) == (run, _owner())


def _now_ms() -> int:
    return int(time.time() * 1000)


def _reason(flow: Flow, seen: FlowRecord) -> str:
    if seen.state is not State.ACTIVE:
        return f"{flow.name} is {seen.state}; nothing was copied"
    if seen.lease is None:
        return f"{flow.name} could not be leased; nothing was copied"
    return f"run {seen.lease.run} of {seen.lease.owner} holds {flow.name}; nothing was copied"
