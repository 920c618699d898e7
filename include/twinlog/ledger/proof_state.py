"""Which stretches of the logs were proven when, and what the last reconciliation said: kept beside the ledger.

    <ledger>/_reconciled/source=nyc/target=lon/proven.parquet       one row a stretch of a pair
                                               state.json           when, how far the journal was recorded by then
                                               verdict.json         the last verdict, for status and metrics
                                               report-<time>/       what each of the last runs found (see operations)

Losing any of it costs nothing but proving again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyarrow import parquet as pq

from twinlog.ledger.folder import Folder
from twinlog.ledger.store import Ledger

SCHEMA = pa.schema(
    [
        ("source_topic_id", pa.string()),
        ("target_topic_id", pa.string()),
        ("partition", pa.int32()),
        ("source_start", pa.int64()),
        ("source_end", pa.int64()),
        ("target_end", pa.int64()),
        ("proven_at_ms", pa.int64()),
        ("records", pa.bool_()),
    ]
)
_PROVEN, _STATE, _VERDICT = "proven.parquet", "state.json", "verdict.json"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Source offsets of a pair that were proven together; `records` where each record was looked at."""

    source_topic_id: str
    target_topic_id: str
    partition: int
    source_start: int
    source_end: int
    target_end: int
    """How far the target was looked at with them."""
    proven_at_ms: int
    records: bool = False

    @property
    def pair(self) -> tuple[str, str, int]:
        return self.source_topic_id, self.target_topic_id, self.partition


@dataclass(frozen=True)
class ProofState:
    """What one reconciliation leaves to the next."""

    stretches: tuple[Stretch, ...] = ()
    last_run_ms: int | None = None
    journal_id: str = ""
    recorded: int = 0
    """The total of the ledger's mark then: a lower one later tells of files that were lost."""
    journal_compared_ms: int = 0


@dataclass(frozen=True, slots=True)
class LastVerdict:
    """What the last reconciliation of a flow said."""

    verdict: str
    at_ms: int
    differences: int
    scope: str
    figures: dict[str, Any] = field(default_factory=dict)


class ProofStore:
    """The files of one flow."""

    def __init__(self, ledger: Ledger) -> None:
        self.folder = Folder(ledger.beside("_reconciled"), ledger.filesystem)

    def load(self) -> ProofState:
        """The state as it was left; an empty one before the first run, or where it is not readable any more."""
        try:
            found = json.loads(self.folder.read(_STATE))
            table = pq.read_table(pa.BufferReader(self.folder.read(_PROVEN)))
            stretches = tuple(Stretch(**row) for row in table.cast(SCHEMA).to_pylist())
            return ProofState(
                stretches, found["last_run_ms"], found["journal_id"], found["recorded"], found["journal_compared_ms"]
            )
        except (OSError, pa.ArrowInvalid, ValueError, KeyError, TypeError):
            return ProofState()

    def save(self, state: ProofState) -> None:
        columns = {name: [getattr(one, name) for one in state.stretches] for name in SCHEMA.names}
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(columns, schema=SCHEMA), sink, compression="zstd", store_schema=False)
        self.folder.publish(_PROVEN, sink.getvalue())
        kept = {
            "last_run_ms": state.last_run_ms,
            "journal_id": state.journal_id,
            "recorded": state.recorded,
            "journal_compared_ms": state.journal_compared_ms,
        }
        self.folder.publish(_STATE, json.dumps(kept).encode())

    def last(self) -> LastVerdict | None:
        """The last verdict; None before the first, or where it is not readable any more."""
        try:
            return LastVerdict(**json.loads(self.folder.read(_VERDICT)))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def say(self, verdict: LastVerdict) -> None:
        content = {name: getattr(verdict, name) for name in ("verdict", "at_ms", "differences", "scope", "figures")}
        self.folder.publish(_VERDICT, json.dumps(content).encode())


def replaced(
    known: Sequence[Stretch], proven: Sequence[Stretch], disproven: Sequence[Stretch] = ()
) -> tuple[Stretch, ...]:
    """`known` with what was proven now in place of what it covers, and without what was disproven: that is as if it had
    never been looked at, so that it is looked at, and told, until it is mended."""
    anew: dict[tuple[str, str, int], list[Stretch]] = {}
    for one in (*proven, *disproven):
        anew.setdefault(one.pair, []).append(one)
    for stretches in anew.values():
        stretches.sort(key=lambda one: one.source_start)
    kept = [rest for one in known for rest in _without(one, anew.get(one.pair, ()))]
    return (*kept, *proven)


def _without(old: Stretch, covers: Sequence[Stretch]) -> Iterator[Stretch]:
    """What is left of a stretch beside those, which are in order."""
    start = old.source_start
    if start == old.source_end:
        # It only tells how far the target was looked at.
        if not any(one.target_end >= old.target_end for one in covers):
            yield old
        return
    for one in covers:
        if one.source_end <= start or one.source_start >= old.source_end:
            continue
        if one.source_start > start:
            yield replace(old, source_start=start, source_end=one.source_start)
        start = max(start, one.source_end)
    if start < old.source_end:
        yield replace(old, source_start=start)
