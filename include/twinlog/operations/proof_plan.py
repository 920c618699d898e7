"""From the ledger's rows and both logs to blocks, and from blocks to orders of about equal size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np  # noqa: TID253 - no DAG imports an operation at its top

from twinlog.cluster.proof_order import Block, ProofRow
from twinlog.ledger.proof_choice import Bools, Choice, chosen, cut, runs_of
from twinlog.ledger.proof_rows import PairRows
from twinlog.ledger.proof_state import Stretch
from twinlog.model.offsets import PartitionPair, Span
from twinlog.model.reconciliation import Difference, Kind
from twinlog.operations.log_facts import NO_MORE, LogFacts, SideFacts

LONGEST_TRANSACTION_MS = 3_600_000
"""Well beyond what brokers let a transaction take by default, a quarter of an hour."""

Groups = Mapping[tuple[UUID, int], Sequence[PairRows]]


@dataclass(frozen=True)
class SizedBlock:
    """A block, and what it weighs."""

    block: Block
    bytes: int


@dataclass(frozen=True)
class ProofPlan:
    """Everything to be looked at."""

    blocks: tuple[SizedBlock, ...]
    rows: int
    hidden: int
    """Rows that were left out, since their records can't be seen yet."""
    stuck: tuple[Difference, ...] = ()
    """Those of them that should be seen by now."""


def plan_proof(
    groups: Groups,
    source: SideFacts,
    target: SideFacts,
    known: Sequence[Stretch],
    choice: Choice,
    *,
    now_ms: int,
    sole_writer: bool,
) -> ProofPlan:
    """The blocks of everything that is chosen, each partition's in order, with the ends of the targets' logs."""
    pairs = [one for members in groups.values() for one in members]
    logs = {id(one): logs_of(one.pair, source, target) for one in pairs}
    pairs = [one for one in pairs if logs[id(one)] is not None]
    retained = [_retained(one, logs[id(one)]) for one in pairs]
    hidden = {id(one): _hidden(one, logs[id(one)]) for one in pairs}
    bounded_by_nothing = choice.since_ms is None
    picked = {
        id(one): (rows | (_cut_off(one, logs[id(one)], now_ms) & bounded_by_nothing)) & ~hidden[id(one)]
        for one, rows in zip(pairs, chosen(pairs, retained, known, choice), strict=True)
    }
    seen = _seen_ends(known)
    blocks: list[SizedBlock] = []
    for members in groups.values():
        before = 0
        for number, one in enumerate(members):
            facts = logs[id(one)]
            if facts is not None:
                last = number == len(members) - 1
                limit = target.max_batch_bytes.get(one.pair.target_topic, 2**31 - 1)
                maker = _BlockMaker(one, *facts, before, last, limit, sole_writer)
                blocks += maker.blocks(picked[id(one)], seen.get(_key(one.pair), 0), again=choice.full)
            before = int(one.target_end.max(initial=0))
    return ProofPlan(
        tuple(blocks),
        sum(len(one.block.rows) for one in blocks),
        int(sum(rows.sum() for rows in hidden.values())),
        tuple(_stuck(pairs, hidden, now_ms)),
    )


def shared_out(blocks: Sequence[SizedBlock], tasks: int) -> list[list[Block]]:
    """As many shares of about equal size; neighbours stay together, so that a task reads on where it was."""
    total = sum(one.bytes for one in blocks) or len(blocks)
    shares: list[list[Block]] = [[] for _ in range(max(1, tasks))]
    spent = 0
    for one in blocks:
        middle = spent + one.bytes // 2
        shares[min(len(shares) - 1, middle * len(shares) // max(1, total))].append(one.block)
        spent += one.bytes
    return [share for share in shares if share]


class _BlockMaker:
    """Blocks of one pair."""

    def __init__(  # noqa: PLR0917 - a pair, and what is known of its logs
        self,
        rows: PairRows,
        source: LogFacts,
        target: LogFacts,
        target_before: int,
        last: bool,
        max_batch_bytes: int,
        sole_writer: bool,
    ) -> None:
        self._rows = rows
        self._source = source
        self._target = target
        self._before = target_before
        self._last = last
        self._max_batch_bytes = max_batch_bytes
        self._sole_writer = sole_writer

    def blocks(self, picked: Bools, seen_end: int, *, again: bool) -> Iterator[SizedBlock]:
        rows = self._rows
        for begin, end in runs_of(picked):
            for first, after in cut(rows, begin, end):
                yield SizedBlock(self._block(first, after), int(rows.bytes[first:after].sum()) + 1)
        if picked[-1] or not self._last:
            return
        # Nothing of ours is new, but somebody may have written behind it; our own last marker takes one offset.
        start = int(rows.target_end.max())
        if self._target.end > max(start + 1, seen_end) or (again and self._target.end > start):
            place = int(rows.source_end[-1])
            span = Span(start, self._target.end)
            yield SizedBlock(self._made((), Span(place, place), span), 1)

    def _block(self, first: int, after: int) -> Block:
        rows = self._rows
        made = tuple(part for row in range(first, after) for part in self._proof_rows(row))
        source = Span(int(rows.span_start[first]), int(rows.source_end[after - 1]))
        start = self._before if not first else int(rows.target_end[first - 1])
        end = int(rows.target_end[after - 1])
        if self._last and after == len(rows):
            end = max(end, self._target.end)
        return self._made(made, source, Span(start, end))

    def _made(self, rows: tuple[ProofRow, ...], source: Span, target: Span) -> Block:
        return Block(
            self._rows.pair,
            rows,
            source,
            target,
            self._source.rules,
            self._target.rules,
            self._source.end,
            self._target.end,
            self._max_batch_bytes,
            self._sole_writer,
        )

    def _proof_rows(self, row: int) -> Iterator[ProofRow]:
        rows = self._rows
        source, target, newest = int(rows.source_start[row]), int(rows.target_start[row]), int(rows.newest_ms[row])
        for first, records, digest in rows.parts(row):
            gaps, filtered = (int(rows.gaps[row]), int(rows.filtered[row])) if not first else (0, 0)
            start = source + first
            yield ProofRow(start - gaps, start, target + first, records, digest, filtered, newest)


def logs_of(pair: PartitionPair, source: SideFacts, target: SideFacts) -> tuple[LogFacts, LogFacts] | None:
    """What is known of the pair's logs; None where one won't say, or the target's is another one now."""
    if not target.is_current(pair.target_topic, pair.target_topic_id) or pair.target not in target.logs:
        return None
    if source.is_current(pair.source_topic, pair.source_topic_id):
        return (source.logs[pair.source], target.logs[pair.target]) if pair.source in source.logs else None
    return (NO_MORE, target.logs[pair.target]) if source.is_gone(pair.source_topic, pair.source_topic_id) else None


def _retained(rows: PairRows, logs: tuple[LogFacts, LogFacts] | None) -> Bools:
    """The rows of which either log still holds something."""
    if logs is None:
        raise ValueError(f"{rows.pair.source}: nothing is known of its logs")
    source, target = logs
    kept: Bools = (rows.source_end > source.rules.start) | ((rows.target_end > target.rules.start) & (rows.count > 0))
    return kept


def _hidden(rows: PairRows, logs: tuple[LogFacts, LogFacts] | None) -> Bools:
    """The rows whose records are on the target and can't be seen yet: of a transaction that was committed while this
    run took its bearings, or behind somebody's that is open. They wait for the next run."""
    end, log_end = (0, 0) if logs is None else (logs[1].end, logs[1].log_end)
    found: Bools = (rows.target_end > end) & (rows.target_end <= log_end) & (rows.count > 0)
    return found


def _stuck(pairs: Sequence[PairRows], hidden: Mapping[int, Bools], now_ms: int) -> Iterator[Difference]:
    """What has been hidden for longer than a transaction may take, from readers of committed records as well."""
    for one in pairs:
        rows = np.flatnonzero(hidden[id(one)] & (one.copied_at_ms < now_ms - LONGEST_TRANSACTION_MS))
        if len(rows):
            first, pair = int(rows[0]), one.pair
            yield Difference(
                Kind.UNREADABLE,
                pair.source_topic,
                pair.partition,
                int(one.source_start[first]),
                int(one.target_start[first]),
                f"a transaction that is open on {pair.target} hides what was copied from every reader of committed "
                "records; find its producer with kafka-transactions.sh find-hanging, and abort it",
                int(one.count[rows].sum()),
            )


def _cut_off(rows: PairRows, logs: tuple[LogFacts, LogFacts] | None, now_ms: int) -> Bools:
    """The rows that the target has lost at its log's start or end and should have, as the logs' bounds alone tell: they
    wait for no turn."""
    nothing: Bools = np.zeros(len(rows), dtype=np.bool_)
    if logs is None:
        return nothing
    source, target = logs
    wanted = (rows.source_end > source.rules.start) & (rows.count > 0)
    lost = wanted & ((rows.target_start < target.rules.start) | (rows.target_end > target.log_end))
    for row in np.flatnonzero(lost).tolist():
        before = int(rows.target_start[row]) < target.rules.start
        nothing[row] = not before or not target.rules.may_have_expired(int(rows.newest_ms[row]), now_ms)
    return nothing


def _seen_ends(known: Sequence[Stretch]) -> dict[tuple[str, str, int], int]:
    """How far each pair's target was looked at."""
    ends: dict[tuple[str, str, int], int] = {}
    for one in known:
        ends[one.pair] = max(ends.get(one.pair, 0), one.target_end)
    return ends


def _key(pair: PartitionPair) -> tuple[str, str, int]:
    return str(pair.source_topic_id), str(pair.target_topic_id), pair.partition
