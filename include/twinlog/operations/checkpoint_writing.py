"""Writes what a pass has decided: the records, then the groups' offsets, then the records' confirmation.

    records, the intents  -->  some groups: may we still? are their offsets as we saw them? commit, confirm  -->  next

What always holds:
- no offset is committed before the record that names it as ours is visible;
- right before groups are committed it is made sure that the flow may still write, that no later pass has begun, and
  that each offset on the target is the one that the decision was taken on; one that has changed is left alone;
- what was not committed does not stay named as ours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from twinlog.cluster.checkpoint_store import CheckpointNote, CheckpointStore, GroupPartition
from twinlog.cluster.group_offsets import CommitOutcome, Offsets, commit_offsets, fetch_offsets
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import Refusal, portions
from twinlog.cluster.transaction import TransactionalWriter
from twinlog.model.checkpoints import Commit, Reason
from twinlog.model.offsets import TopicPartition
from twinlog.operations.standings import Standing

GROUPS_AT_ONCE = 250
"""Between looking at a group's offsets and committing lies the time that so many groups take."""


@dataclass(frozen=True)
class CheckpointWriting:
    """Where one pass writes to; `demand_leave` raises FencedError where the flow may no longer write."""

    clients: Sequence[RawClient]
    """Connections to the target; the first one does all but commit."""
    store: CheckpointStore
    writer: TransactionalWriter
    demand_leave: Callable[[], None]

    def write_records(self, rows: Sequence[Standing]) -> int:
        """Append the checkpoints that have changed; answers how many."""
        notes = {
            row.place: CheckpointNote(row.checkpoint, row.decision.ours)
            for row in rows
            if row.record_due and row.place is not None and row.checkpoint is not None
        }
        self._append(notes)
        return len(notes)

    def commit(self, rows: Sequence[Standing]) -> tuple[Standing, ...]:
        """Commit what is due; answers the rows with what became of it."""
        due: dict[str, list[Standing]] = defaultdict(list)
        for row in rows:
            if row.commit_due:
                due[row.group].append(row)
        after: dict[GroupPartition | None, Standing] = {}
        for names in portions(sorted(due), lambda _: 1, GROUPS_AT_ONCE):
            chosen = [row for name in names for row in due[name]]
            after |= {row.place: row for row in self._commit(chosen)}
        return tuple(after.get(row.place, row) if row.commit_due else row for row in rows)

    def _commit(self, rows: Sequence[Standing]) -> list[Standing]:
        target = self.clients[0]
        # Offsets are committed outside any transaction, so nobody can fence them: these say whether somebody would.
        self.demand_leave()
        target.run(self.writer.open())
        now = target.run(fetch_offsets(target, sorted({row.group for row in rows})))
        looked = [as_seen(row, now) for row in rows]
        commits = commits_of(looked)
        outcomes = target.run(commit_offsets(self.clients, commits)) if commits else {}
        after = [with_outcome(row, outcomes.get(row.group)) for row in looked]
        self._append(dict(settled(after)))
        return after

    def _append(self, notes: Mapping[GroupPartition, CheckpointNote]) -> None:
        if notes:
            self.clients[0].run(self.store.write(self.writer, notes))


def as_seen(row: Standing, now: Offsets) -> Standing:
    """The row as it was decided where its group's offset is still the same, otherwise with the reason to leave it."""
    refused = now.refused.get(row.group)
    if refused is not None:
        return replace(row, reason=_refused(refused))
    found = now.groups.get(row.group, {}).get(row.target) if row.target is not None else None
    if found == row.there:
        return row
    wanted = row.checkpoint.downstream if row.checkpoint is not None else 0
    further = found is not None and found.offset > wanted
    return replace(
        row,
        offset=None if found is None else found.offset,
        reason=Reason.OWN_POSITION if further else Reason.MOVED,
        decision=replace(row.decision, kept=frozenset()),
    )


def commits_of(rows: Sequence[Standing]) -> dict[str, dict[TopicPartition, Commit]]:
    """By group, what nothing speaks against."""
    found: dict[str, dict[TopicPartition, Commit]] = defaultdict(dict)
    for row in rows:
        if row.reason is None and row.target is not None and row.checkpoint is not None:
            found[row.group][row.target] = Commit(row.checkpoint.downstream, metadata=row.checkpoint.metadata)
    return found


def with_outcome(row: Standing, outcome: CommitOutcome | None) -> Standing:
    """The row with what its group's coordinator said of the commit."""
    if outcome is None or row.reason is not None or row.target is None:
        return row
    if outcome.active:
        return replace(row, offset=None if row.there is None else row.there.offset, reason=Reason.ACTIVE)
    refused = outcome.refused.get(row.target)
    return row if refused is None else replace(row, reason=_refused(refused))


def settled(rows: Sequence[Standing]) -> Iterator[tuple[GroupPartition, CheckpointNote]]:
    """What the records have to say now that it is known what was committed, where that differs from the intent."""
    for row in rows:
        if row.place is None or row.checkpoint is None:
            continue
        ours = frozenset({row.checkpoint.downstream}) if row.reason is None else row.decision.kept
        if ours != row.decision.ours:
            yield row.place, CheckpointNote(row.checkpoint, ours)


def _refused(why: Refusal) -> Reason:
    return Reason.NOT_AUTHORIZED if why.not_allowed else Reason.REFUSED
