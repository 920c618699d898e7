"""Checkpoints: the positions of the source's groups, translated and written to the target, so that a group that moves
there goes on exactly where it stopped.

One pass, in this order:

    1  the checkpoints topic is opened for writing (an earlier pass that is still under way is overtaken) and read
    2  what the groups have committed on the source
    3  positions, journal and ledger of the flow, then the translation of all of it at once: never older than 2
    4  the groups on the target: who is active, what each has committed there
    5  checkpoint records of what has changed, the intent; then the groups' offsets, and the records' confirmation

A pass that dies anywhere leaves a state from which the next one goes on. After a failover the target leads, and nothing
is written for its groups.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.checkpoint_store import CheckpointStore
from twinlog.cluster.offsets_retention import offsets_retention_s
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import principal_of
from twinlog.cluster.transaction import TransactionalWriter
from twinlog.errors import FencedError, TwinlogError
from twinlog.intake.extensions import naming_of, topics_of
from twinlog.ledger.store import Ledger
from twinlog.ledger.translate import Translator
from twinlog.model.checkpoints import Reason, checkpoints_transactional_id
from twinlog.model.description import described
from twinlog.model.naming import checkpoints_topic
from twinlog.model.selection import TopicSelection
from twinlog.model.topology import Flow, Topology
from twinlog.operations.checkpoint_writing import CheckpointWriting
from twinlog.operations.flow_gate import SOURCE_LEADS, reason_to_leave, record_of
from twinlog.operations.group_translation import group_translation
from twinlog.operations.internal_topics import create_small_topic
from twinlog.operations.position_keeping import MOST_AGE_S, RENEWALS_A_RETENTION
from twinlog.operations.readiness import Readiness, ReadinessTables, readiness
from twinlog.operations.source_groups import no_longer_there, read_source_groups
from twinlog.operations.standings import Standing, Standings, read_target_groups, standings
from twinlog.wire.mirror_maker import MOST_TEXT_BYTES

CONNECTIONS = 4
"""To each broker that groups are written to; a broker works on one request of a connection at a time."""

_NOT_WRITTEN = "no checkpoint is written; grant it, or set emit.checkpoints.enabled: false"

_HELP = {
    Reason.NOT_AUTHORIZED: "grant Read on the group, and on its topics",
    Reason.REFUSED: "are its topics there, and does offset.metadata.max.bytes allow what the group keeps?",
    Reason.UNREADABLE: "is it a group of consumers?",
    Reason.LONG_METADATA: f"at most {MOST_TEXT_BYTES:,} bytes fit; keep less there, or leave the group out",
}
"""The reasons that somebody can do something about."""

NOBODY = Standings(())


@dataclass(frozen=True)
class CheckpointResult:
    """One pass."""

    flow: str
    dry_run: bool = False
    skipped: str | None = None
    """Why nothing was done, in a sentence; None where the pass took place."""
    seconds: float = 0.0
    standings: Standings = NOBODY
    records: int = 0
    """Checkpoints written to their topic, confirmations aside; with `dry_run`, those that are due."""
    commits: int = 0
    """Offsets committed for groups on the target; with `dry_run`, those that are due."""

    @property
    def failures(self) -> list[str]:
        """What kept offsets from being read or written, each a sentence, once."""
        rows = [row for row in self.standings.rows if row.reason in _HELP]
        return list(dict.fromkeys(f"{self.flow}: group {row.group}: {_said(row)}" for row in rows))

    def to_json(self) -> dict[str, Any]:
        found = self.standings
        return {
            "flow": self.flow,
            "dry_run": self.dry_run,
            "skipped": self.skipped,
            "seconds": round(self.seconds, 3),
            "groups": len(found.groups),
            "groups_ready": found.ready,
            "groups_not_ready": len(found.groups) - found.ready,
            "groups_filtered": found.filtered,
            "groups_gone": len(found.gone),
            "partitions": sum(1 for row in found.rows if row.source is not None),
            "records": self.records,
            "commits": self.commits,
            "left_out": found.left_out,
            "notes": list(found.notes),
        }


class Checkpointing:
    """A flow and everything that a pass over its groups needs."""

    def __init__(
        self, topology: Topology, flow: Flow, source: ClusterAccess, target: ClusterAccess, ledger: Ledger
    ) -> None:
        named = {other.name: naming_of(other) for other in topology.flows.values() if other.naming_policy}
        self._topology = topology
        self._selection = TopicSelection(topology, flow, named, topics_of(flow))
        self._flow = flow
        self._source = source
        self._target = target
        self._ledger = ledger
        self._tables = ReadinessTables(ledger)

    def run(self, *, dry_run: bool = False) -> CheckpointResult:
        """Write what has changed, once."""
        started = time.monotonic()
        writes = not dry_run and (self._flow.emit_checkpoints_enabled or self._flow.sync_group_offsets_enabled)
        with ExitStack() as stack:
            target = stack.enter_context(self._target.raw())
            source = stack.enter_context(self._source.raw(beside=target))
            refused = self._refused(target)
            if refused is not None:
                return CheckpointResult(self._flow.name, dry_run, skipped=refused)
            try:
                writer = self._open(target) if writes else None
                found, translate = self._look(source, target)
                result = CheckpointResult(self._flow.name, dry_run, standings=found)
                if dry_run:
                    result = self._due(result)
                elif writer is not None:
                    result = self._write(stack, target, writer, result)
            except FencedError as overtaken:
                return CheckpointResult(self._flow.name, skipped=f"{self._flow.name}: overtaken: {overtaken}")
            if not dry_run:
                result = self._keep(result, readiness(self._flow, source, target, result.standings, translate))
        return replace(result, seconds=time.monotonic() - started)

    def _keep(self, result: CheckpointResult, found: Readiness) -> CheckpointResult:
        """Write the readiness table; the groups are done by then, and a storage that fails does not undo that."""
        try:
            self._tables.write(found)
        except OSError as failed:
            note = f"{self._flow.name}: the readiness table could not be kept: {failed}"
            return replace(result, standings=replace(result.standings, notes=(*result.standings.notes, note)))
        return result

    def run_if_due(self) -> tuple[str, ...]:
        """The pass at the end of a run, where it is due; what there is to say of it. It fails no run."""
        try:
            if not self.due():
                return ()
            result = self.run()
        # Storage fails with errors of the operating system's kind, S3 too.
        except (TwinlogError, OSError) as failed:
            return (f"the groups were not checkpointed: {failed}",)
        return (*result.failures, *result.standings.notes, *([result.skipped] if result.skipped else []))

    def due(self) -> bool:
        """Whether it is time for a pass at the end of a run, by what the flow says."""
        flow = self._flow
        intervals = [flow.emit_checkpoints_interval_seconds] if flow.emit_checkpoints_enabled else []
        intervals += [flow.sync_group_offsets_interval_seconds] if flow.sync_group_offsets_enabled else []
        if not intervals:
            return False
        last_ms = self._tables.last_ms()
        if last_ms is None:
            return True
        age_ms = time.time() * 1000 - last_ms
        # A clock that was ahead for once must not keep passes away until its time has come.
        return not 0 <= age_ms < min(intervals) * 1000

    def look(self) -> Readiness:
        """How every group stands now; nothing is written."""
        with self._target.raw() as target, self._source.raw(beside=target) as source:
            found, translate = self._look(source, target)
            return readiness(self._flow, source, target, found, translate)

    def _look(self, source: RawClient, target: RawClient) -> tuple[Standings, Translator]:
        strange: list[str] = []
        written = target.run(self._store(target).read(strange))
        groups = target.run(read_source_groups(source, self._flow, {place.group for place in written}))
        translate = group_translation(self._topology, self._flow, self._source, self._target, self._ledger)
        there = target.run(read_target_groups(target, groups, written))
        found = standings(
            self._selection,
            groups,
            translate,
            there,
            renew_before_ms=self._renew_before_ms(target),
            sync=self._flow.sync_group_offsets_enabled,
        )
        notes = (*found.notes, *strange, *self._newly_gone(found.gone))
        return replace(found, notes=notes), translate.onward

    def _newly_gone(self, gone: Collection[str]) -> Iterator[str]:
        """A group that is gone is told of once, by the first pass that misses it; after that it is counted."""
        if gone:
            unreadable: list[str] = []
            seen = self._tables.last_groups(unreadable)
            yield from unreadable
            yield from no_longer_there(self._flow.source, [name for name in gone if seen is None or name in seen])

    def _renew_before_ms(self, target: RawClient) -> int:
        if not self._flow.sync_group_offsets_enabled:
            return 0
        retention_s = target.run(offsets_retention_s(target))
        return int((time.time() - min(MOST_AGE_S, retention_s / RENEWALS_A_RETENTION)) * 1000)

    def _store(self, target: RawClient) -> CheckpointStore:
        return checkpoint_store(self._flow, target)

    def _refused(self, target: RawClient) -> str | None:
        """Why nothing may be written for the groups now, in a sentence."""
        record = target.run(record_of(self._flow, target))
        if not record.lanes:
            return f"{self._flow.name} has never run, so nothing can be translated; run `twinlog mirror` first"
        if record.state not in SOURCE_LEADS:
            return f"{self._flow.name} is {record.state}: its groups go on by themselves on {self._flow.target}"
        return reason_to_leave(self._flow, record, described(self._topology, self._flow), SOURCE_LEADS)

    def _open(self, target: RawClient) -> TransactionalWriter:
        replicas = self._flow.checkpoints_topic_replication_factor
        principal = principal_of(self._target.settings)
        topic = checkpoints_topic(self._flow)
        target.run(create_small_topic(target, principal, topic, replicas, _NOT_WRITTEN))
        writer = target.run(self._store(target).open())
        self._demand_leave(target)
        return writer

    def _demand_leave(self, target: RawClient) -> None:
        """A failover changes the state first and fences afterwards, so who looks after opening can't overlook it."""
        refused = self._refused(target)
        if refused is not None:
            raise FencedError(refused)

    def _due(self, result: CheckpointResult) -> CheckpointResult:
        rows = result.standings.rows
        sync = self._flow.sync_group_offsets_enabled
        return replace(
            result,
            records=sum(row.record_due for row in rows),
            commits=sum(row.commit_due for row in rows) if sync else 0,
        )

    def _write(
        self, stack: ExitStack, target: RawClient, writer: TransactionalWriter, result: CheckpointResult
    ) -> CheckpointResult:
        rows = result.standings.rows
        commits = self._flow.sync_group_offsets_enabled and any(row.commit_due for row in rows)
        more = CONNECTIONS - 1 if commits else 0
        clients = [target, *(stack.enter_context(self._target.raw(beside=target)) for _ in range(more))]
        writing = CheckpointWriting(clients, self._store(target), writer, lambda: self._demand_leave(target))
        records = writing.write_records(rows)
        if not commits:
            return replace(result, records=records)
        after = writing.commit(rows)
        committed = sum(1 for row in after if row.commit_due and row.reason is None)
        return replace(result, records=records, commits=committed, standings=replace(result.standings, rows=after))


def _said(row: Standing) -> str:
    """The reason with what to do about it; a group without a partition could not even be read on the source."""
    side = "source" if row.source is None or row.reason is Reason.LONG_METADATA else "target"
    return f"{row.reason} on the {side}; {_HELP[Reason(str(row.reason))]}"


def checkpoint_store(flow: Flow, target: RawClient) -> CheckpointStore:
    return CheckpointStore(target, checkpoints_topic(flow), checkpoints_transactional_id(flow.name))
