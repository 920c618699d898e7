"""Which rows a reconciliation proves: what is new, and of the rest what was proven longest ago, a share a run.

So that everything that both logs still hold is proven again within so many days, however often it runs: a run takes as
large a share of all bytes as the time since the last one is of those days.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinlog.ledger.proof_rows import PairRows
from twinlog.ledger.proof_state import Stretch

Bools = NDArray[np.bool_]

BLOCK_BYTES = 64 * 1024 * 1024
BLOCK_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to be looked at of what the ledger has."""

    full: bool = False
    since_ms: int | None = None
    again_share: float = 0.0
    """Of all bytes, how much is to be proven again."""
    overdue_before_ms: int = 0
    """What was proven before is to be proven again in any case."""


def chosen(
    rows: Sequence[PairRows], retained: Sequence[Bools], known: Sequence[Stretch], choice: Choice
) -> list[Bools]:
    """Of each pair, which of its rows to prove; what neither log retains can't be."""
    if choice.full:
        return list(retained)
    if choice.since_ms is not None:
        return [kept & (one.copied_at_ms >= choice.since_ms) for one, kept in zip(rows, retained, strict=True)]
    by_pair: dict[tuple[str, str, int], list[Stretch]] = {}
    for stretch in known:
        by_pair.setdefault(stretch.pair, []).append(stretch)
    proven = [_proven_at(one, by_pair.get(_key(one), [])) for one in rows]
    return _due(rows, retained, proven, choice)


def runs_of(chosen_rows: Bools) -> Iterator[tuple[int, int]]:
    """The stretches of neighbouring rows that are chosen: the first, and the one after the last."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], chosen_rows, [False])).astype(np.int8)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def cut(rows: PairRows, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Neighbouring rows in blocks of bounded size; one row that is larger is a block by itself."""
    at = begin
    while at < end:
        after = at + 1
        size = int(rows.bytes[at])
        while after < end and after - at < BLOCK_ROWS and size + int(rows.bytes[after]) <= BLOCK_BYTES:
            size += int(rows.bytes[after])
            after += 1
        yield at, after
        at = after


def _key(rows: PairRows) -> tuple[str, str, int]:
    return str(rows.pair.source_topic_id), str(rows.pair.target_topic_id), rows.pair.partition


def _proven_at(rows: PairRows, stretches: Sequence[Stretch]) -> NDArray[np.int64]:
    """When each row was proven last; 0 for never."""
    at = np.zeros(len(rows), dtype=np.int64)
    starts, ends = rows.span_start, rows.source_end
    for one in sorted(stretches, key=lambda one: one.proven_at_ms):
        at[(starts >= one.source_start) & (ends <= one.source_end)] = one.proven_at_ms
    return at


def _due(
    rows: Sequence[PairRows], retained: Sequence[Bools], proven: Sequence[NDArray[np.int64]], choice: Choice
) -> list[Bools]:
    """What was never proven, what is overdue, and of the rest the rows that were proven longest ago."""
    if not rows:
        return []
    kept, at = np.concatenate(list(retained)), np.concatenate(list(proven))
    size = np.where(kept, np.concatenate([one.bytes for one in rows]), 0)
    picked = at <= max(0, choice.overdue_before_ms)
    # Whole rows only, none rather than one too many: what is left for too long becomes overdue.
    order = np.flatnonzero(~picked & kept)
    order = order[np.argsort(at[order], kind="stable")]
    wanted = float(size.sum()) * min(1.0, choice.again_share)
    picked[order[np.cumsum(size[order]) <= wanted]] = True
    picked &= kept
    ends = np.cumsum([len(one) for one in rows])[:-1]
    return list(np.split(picked, ends))
