"""What the target remembers of a flow between runs: whether it may run, who is running it, and how it is cut into
lanes.

It lives on the target cluster, in a compacted topic of one partition, one record a key. A writer reads it *after*
it has fenced its lane, so whoever changes the state first and fences afterwards can't be overlooked.
"""

from __future__ import annotations

import json
from dataclasses import asdict, astuple, dataclass, replace
from enum import StrEnum

from twinlog.errors import FlowStateError
from twinlog.model.acls import Acl, acl_of
from twinlog.model.description import Description
from twinlog.model.failback import FailbackProgress
from twinlog.model.migration import Migration, to_value
from twinlog.model.migration import from_json as migration_from_json
from twinlog.model.takeover_progress import Takeover


class State(StrEnum):
    """Whether a flow may copy."""

    ACTIVE = "active"
    PAUSED = "paused"
    FAILED_OVER = "failed over"
    FAILING_BACK = "failing back"


ALLOWED = {
    State.ACTIVE: {State.PAUSED, State.FAILED_OVER},
    State.PAUSED: {State.ACTIVE, State.FAILED_OVER},
    State.FAILED_OVER: {State.FAILING_BACK},
    State.FAILING_BACK: {State.ACTIVE, State.FAILED_OVER},
}


@dataclass(frozen=True, slots=True)
class Holder:
    """One try of one run. When a scheduler tries a run again, the run is the same and the owner is not."""

    run: str
    owner: str

    def __str__(self) -> str:
        return f"run {self.run} of {self.owner}"


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run a flow, held by one try of a run until it gives it back or the time is up."""

    run: str
    owner: str
    expires_at_ms: int

    @property
    def holder(self) -> Holder:
        return Holder(self.run, self.owner)

    def holds(self, now_ms: int) -> bool:
        return now_ms < self.expires_at_ms


@dataclass(frozen=True, slots=True)
class FlowRecord:
    """All that is kept of one flow. A flow that was never run is active, with no lanes and no lease."""

    state: State = State.ACTIVE
    lanes: int = 0
    """How many lanes the target's partitions are divided into; 0 before the first run."""
    lease: Lease | None = None
    throttle_bytes_per_s: int = 0
    """What all tasks of the flow together may write in a second; 0: as fast as it goes."""
    retiring_lanes: int = 0
    """Lanes of an earlier layout that may still have a writer; 0 once every one of them is fenced."""
    renewed_at_ms: int = 0
    """When the positions of idle partitions were last written anew, lest the target forget them."""
    description: Description | None = None
    """By which description the flow runs; None before its first run."""
    takeover: Takeover | None = None
    """The last takeover of the flow, and how far it has come; None where there was none."""
    write_block: tuple[Acl, ...] = ()
    """What was denied on the source for a switchover, to be taken back when that is undone or the flow comes home."""
    failback: FailbackProgress | None = None
    """The last failback of the flow, and how far it has come; None where there was none."""
    came_home: bool = False
    """Whether records of the target have ever gone home: they are on the source now, and are not mirrored again."""
    migration: Migration | None = None
    """The migration that the flow is part of; None of one that just mirrors."""

    def moved_to(self, state: State, flow: str) -> FlowRecord:
        """The record after a change of state, if that change is one that makes sense."""
        if state is not self.state and state not in ALLOWED[self.state]:
            allowed = ", ".join(sorted(ALLOWED[self.state]))
            raise FlowStateError(f"{flow} is {self.state} and can't become {state}; from here it may become {allowed}")
        # While a flow fails back whoever has the lease may write: nobody must find one there from before.
        begins = state is State.FAILING_BACK and self.state is not state
        return replace(self, state=state, lease=None if begins else self.lease)

    def leased_by(self, lease: Lease, now_ms: int) -> FlowRecord | None:
        """The record with this lease on it, or None while another run holds one; a new try takes its run's lease."""
        if self.lease is not None and self.lease.run != lease.run and self.lease.holds(now_ms):
            return None
        return replace(self, lease=lease)

    def laid_out(self, lanes: int) -> FlowRecord:
        """The record with the partitions divided into so many lanes; those of before are noted, to be fenced."""
        retiring = self.retiring_lanes if self.lanes == lanes else max(self.retiring_lanes, self.lanes)
        return replace(self, lanes=lanes, retiring_lanes=retiring)

    def is_leased_to(self, holder: Holder) -> bool:
        """Whether the lease is that of `holder`; nobody else has taken it, be its time up or not."""
        return self.lease is not None and self.lease.holder == holder

    def reason_to_stop(self, holder: Holder, flow: str) -> str | None:
        """Why `holder` may not go on copying, if so. While a flow fails back, only the failback gets the lease."""
        if self.state not in (State.ACTIVE, State.FAILING_BACK):
            return f"{flow} is {self.state}"
        if not self.is_leased_to(holder):
            other = "nobody" if self.lease is None else str(self.lease.holder)
            return f"the lease of {flow} is held by {other}, not by {holder}"
        return None

    def reason_to_wait(self, flow: str, migration: str | None) -> str | None:
        """Why a run that is not part of `migration` (None: of any) has to wait for the one under way, if so."""
        if self.migration is None or not self.migration.fills or self.migration.id == migration:
            return None
        return f"{flow} is being migrated and is at its {self.migration.phase}: its runs are those of `twinlog migrate`"

    def released_by(self, holder: Holder) -> FlowRecord:
        """The record after `holder` gave its lease back; another's lease stays."""
        return replace(self, lease=None) if self.is_leased_to(holder) else self


def to_records(record: FlowRecord) -> dict[str, bytes]:
    """The key and value of each record that says this on the state topic."""
    return {
        "state": json.dumps(record.state).encode(),
        "lanes": json.dumps(record.lanes).encode(),
        "lease": json.dumps(asdict(record.lease) if record.lease else None).encode(),
        "throttle": json.dumps(record.throttle_bytes_per_s).encode(),
        "retiring lanes": json.dumps(record.retiring_lanes).encode(),
        "renewed": json.dumps(record.renewed_at_ms).encode(),
        "failback": json.dumps(record.failback.to_json() if record.failback else None).encode(),
        "came home": json.dumps(record.came_home).encode(),
        "description": json.dumps(asdict(record.description) if record.description else None).encode(),
        "takeover": json.dumps(record.takeover.to_json() if record.takeover else None).encode(),
        "write block": json.dumps([list(astuple(acl)) for acl in record.write_block]).encode(),
        "migration": to_value(record.migration),
    }


def from_records(values: dict[str, bytes], where: str) -> FlowRecord:
    """What the newest value of each key says; keys that a newer twinlog added are left alone."""
    try:
        said = {key: json.loads(value) for key, value in values.items()}
        lease, description = said.get("lease"), said.get("description")
        takeover, failback, migration = said.get("takeover"), said.get("failback"), said.get("migration")
        return FlowRecord(
            state=State(said.get("state", State.ACTIVE)),
            lanes=int(said.get("lanes", 0)),
            lease=Lease(**lease) if lease else None,
            throttle_bytes_per_s=int(said.get("throttle", 0)),
            retiring_lanes=int(said.get("retiring lanes", 0)),
            renewed_at_ms=int(said.get("renewed", 0)),
            description=Description(**description) if description else None,
            takeover=Takeover.from_json(takeover) if takeover else None,
            write_block=tuple(acl_of(words) for words in said.get("write block", ())),
            failback=FailbackProgress.from_json(failback) if failback else None,
            came_home=bool(said.get("came home", False)),
            migration=migration_from_json(migration) if migration else None,
        )
    except (ValueError, TypeError, KeyError) as wrong:
        raise FlowStateError(
            f"{where}: the flow's state can't be read: {wrong}; was it written by a newer twinlog?"
        ) from wrong
