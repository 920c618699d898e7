"""The first half of a reconciliation: the ledger's rows behind the barrier, what both logs are like, and whether every
source offset below the positions is accounted for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

import pyarrow as pa  # noqa: TID253 - no DAG imports an operation at its top
import pyarrow.compute as pc  # noqa: TID253 - as above

from twinlog.cluster.committed import fetch_positions
from twinlog.cluster.raw import RawClient
from twinlog.ledger.ledger_check import LedgerFiles, journal_rows, look_at, lost_rows, unlike_journal
from twinlog.ledger.proof_rows import COLUMNS, PairRows, account_of, by_target, unaccounted
from twinlog.ledger.proof_state import ProofState
from twinlog.ledger.schema import GAP_COLUMNS
from twinlog.ledger.store import Ledger
from twinlog.model.lanes import journal_topic, position_group
from twinlog.model.offsets import TopicPartition
from twinlog.model.positions import Position
from twinlog.model.reconciliation import NOTHING_COPIED, Account, Difference, Kind
from twinlog.model.topology import Flow
from twinlog.operations.log_facts import SideFacts, side_facts
from twinlog.operations.proof_plan import Groups, logs_of
from twinlog.operations.recording import bring_up_to_date, journal_of
from twinlog.operations.run_scope import Ends

SMALL_JOURNAL = 200_000
"""Entries; a journal that is no larger is read whole and compared with the ledger every time."""


@dataclass(frozen=True)
class Scope:
    """What a reconciliation is to look at; the default is what is new, and a share of the rest."""

    since_ms: int | None = None
    """Only what was copied at this time or later."""
    topics: str | None = None
    """Only source topics whose whole name this pattern matches."""
    full: bool = False
    """Everything that both logs still hold."""
    deep: bool = False
    """Every record, not only digests."""
    rate: float | None = None
    """MB/s read from each cluster at the most; the flow's own limit where it is not given."""

    def takes(self, topic: str) -> bool:
        return self.topics is None or re.fullmatch(self.topics, topic) is not None

    @property
    def is_bounded(self) -> bool:
        """Whether there is something that it leaves out altogether."""
        return self.since_ms is not None or self.topics is not None

    @property
    def words(self) -> str:
        what = "everything" if self.full else "what is new, and a share of the rest"
        if self.since_ms is not None:
            what = f"what was copied since {self.since_ms}"
        return f"{what}{f' of {self.topics}' if self.topics else ''}{', record by record' if self.deep else ''}"


EVERYTHING_NEW = Scope()


@dataclass(frozen=True)
class Look:
    """The ledger and both logs at one moment."""

    groups: Groups
    source: SideFacts
    target: SideFacts
    differences: tuple[Difference, ...] = ()
    journal_id: str = ""
    recorded: int = 0
    journal_compared: bool = False
    gaps: Mapping[str, int] = field(default_factory=dict)
    account: Account = NOTHING_COPIED

    @property
    def pairs(self) -> list[PairRows]:
        return [one for members in self.groups.values() for one in members]


def look(  # noqa: PLR0917 - a flow, how it is reached, and what is asked
    flow: Flow,
    ends: Ends,
    ledger: Ledger,
    source: RawClient,
    target: RawClient,
    scope: Scope,
    state: ProofState,
    *,
    compare_journal: bool,
) -> Look | None:
    """Look once; None where the flow has never run."""
    journal_name = journal_topic(flow.source, flow.target)
    if target.run(target.metadata([journal_name])).topics[journal_name].is_missing:
        return None
    differences: list[Difference] = []
    files = look_at(ledger)
    positions = target.run(fetch_positions(target, position_group(flow.name), stable=False))
    before = [one.pair for members in by_target(files.rows).values() for one in members]
    proven = bring_up_to_date(ledger, flow, ends.target, target, {*positions, *(pair.target for pair in before)})
    journal = journal_of(flow, ends.target, target)
    mark = proven.read.mark
    lost = _lost(files, state, journal.topic_id)
    compared = compare_journal or bool(lost) or sum(proven.journal_ends.values()) <= SMALL_JOURNAL
    entries = journal_rows(journal, proven.journal_ends) if compared else None
    rows = entries if files.damaged and entries is not None else ledger.read(COLUMNS)
    if lost:
        differences += lost_rows(files, rows, lost)
    groups = _wanted(by_target(rows), scope)
    pairs = [one for members in groups.values() for one in members]
    here = source.run(side_facts(source, (one.pair.source for one in pairs), is_source=True))
    there = target.run(side_facts(target, (one.pair.target for one in pairs), proven.data_ends, is_source=False))
    if entries is not None and not files.damaged:
        differences += _against_journal(rows, entries, here, there)
    copied = {_place(one) for one in pairs if logs_of(one.pair, here, there) is not None}
    for one in pairs:
        # What was copied to an earlier twin and is copied to this one does not need the earlier.
        if _place(one) not in copied or logs_of(one.pair, here, there) is not None:
            differences += _completeness(flow, one, positions, here, there)
    if scope.topics is None:
        differences += _never_recorded(flow, positions, pairs)
    return Look(
        groups,
        here,
        there,
        tuple(one for one in differences if one.topic is None or scope.takes(one.topic)),
        journal.topic_id,
        mark.node.total,
        entries is not None,
        _gaps(rows, scope),
        _account(pairs, positions, here, there),
    )


def _account(
    pairs: Sequence[PairRows], positions: Mapping[TopicPartition, Position], source: SideFacts, target: SideFacts
) -> Account:
    """Of the pairs whose logs can be compared."""
    known = [(one, logs) for one in pairs if (logs := logs_of(one.pair, source, target)) is not None]
    return account_of(
        (one for one, _ in known),
        (min(logs[0].rules.start, int(one.source_end[-1])) for one, logs in known),
        (_end_of(one, positions) for one, _ in known),
    )


def _end_of(rows: PairRows, positions: Mapping[TopicPartition, Position]) -> int | None:
    """The pair's position, if it has one."""
    position, pair = positions.get(rows.pair.target), rows.pair
    if position is None or (position.source_topic_id, position.target_topic_id) != (
        pair.source_topic_id,
        pair.target_topic_id,
    ):
        return None
    return position.offset


def _gaps(rows: pa.Table, scope: Scope) -> dict[str, int]:
    """Source offsets that have no record on the target, by kind."""
    names = pc.unique(rows.column("source_topic").cast(pa.string())).to_pylist()
    taken = pa.array([name for name in names if scope.takes(name)], pa.string())
    rows = rows.filter(pc.is_in(rows.column("source_topic").cast(pa.string()), value_set=taken))
    totals = {kind.value: pc.sum(rows.column(column)).as_py() or 0 for kind, column in GAP_COLUMNS.items()}
    return {kind: total for kind, total in totals.items() if total}


def _lost(files: LedgerFiles, state: ProofState, journal_id: str) -> str:
    """Why the ledger is not what was recorded; empty where it is."""
    if files.damaged:
        return "; ".join(f"the ledger's file {name} can't be read ({why})" for name, why in files.damaged.items())
    if files.stranded:
        return f"a file of the ledger before {files.stranded[0]} is missing"
    if state.journal_id == journal_id and files.total < state.recorded:
        return f"the ledger was recorded up to {state.recorded} and ended at {files.total}: a file of it is missing"
    return ""


def _wanted(groups: dict[tuple[UUID, int], list[PairRows]], scope: Scope) -> Groups:
    return {
        place: members
        for place, members in groups.items()
        if any(scope.takes(one.pair.source_topic) for one in members)
    }


def _against_journal(rows: pa.Table, entries: pa.Table, source: SideFacts, target: SideFacts) -> Iterator[Difference]:
    floors = {}
    for members in by_target(pa.concat_tables([rows, entries]).unify_dictionaries()).values():
        for one in members:
            logs = logs_of(one.pair, source, target)
            if logs is not None:
                floors[one.pair] = logs[0].rules.start, logs[1].rules.start
    return unlike_journal(rows, entries, floors)


def _completeness(
    flow: Flow, rows: PairRows, positions: Mapping[TopicPartition, Position], source: SideFacts, target: SideFacts
) -> Iterator[Difference]:
    """Whether the pair's rows account for every source offset, and whether its logs are there to be compared."""
    pair = rows.pair
    logs = logs_of(pair, source, target)
    if logs is None:
        yield from _not_there(flow, rows, source, target)
        return
    log_start = min(logs[0].rules.start, int(rows.source_end[-1]))
    for hole in unaccounted(rows, log_start, _end_of(rows, positions)):
        said = "accounted for more than once" if hole.twice else "not accounted for"
        yield Difference(
            Kind.HOLE,
            pair.source_topic,
            pair.partition,
            hole.source.start,
            hole.target_offset,
            f"the ledger's rows: source offsets {hole.source.start} to {hole.source.end - 1} are {said}",
            hole.source.end - hole.source.start,
        )


def _place(rows: PairRows) -> tuple[UUID, int]:
    return rows.pair.source_topic_id, rows.pair.partition


def _not_there(flow: Flow, rows: PairRows, source: SideFacts, target: SideFacts) -> Iterator[Difference]:
    pair = rows.pair
    first = Difference(
        Kind.UNREADABLE,
        pair.source_topic,
        pair.partition,
        int(rows.source_start[0]),
        int(rows.target_start[0]),
        "",
        max(1, int(rows.count.sum())),
    )
    if target.is_gone(pair.target_topic, pair.target_topic_id):
        if source.is_current(pair.source_topic, pair.source_topic_id):
            detail = f"the twin {pair.target_topic} is gone from {flow.target}, or was made anew; a run copies it again"
            yield replace(first, kind=Kind.MISSING, detail=detail)
        return
    why = source.failed.get(pair.source) or target.failed.get(pair.target) or "a cluster won't say what it is like"
    yield replace(first, detail=f"{pair.source} could not be compared: {why}")


def _never_recorded(
    flow: Flow, positions: Mapping[TopicPartition, Position], pairs: Iterable[PairRows]
) -> Iterator[Difference]:
    """Partitions that have a position and no row at all, though something of them was copied."""
    known = {one.pair.target for one in pairs}
    for partition, position in positions.items():
        if partition not in known and position.target_end > 0:
            yield Difference(
                Kind.HOLE,
                None,
                partition.partition,
                0,
                0,
                f"{flow.name} has a position on {partition} and neither its journal nor its ledger a row",
                max(1, position.offset),
            )
