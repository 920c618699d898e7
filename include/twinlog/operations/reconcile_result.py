"""What a reconciliation found, as DAGs, the command line and the page show it: first the answer, then the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from twinlog.ledger.proof_state import LastVerdict
from twinlog.model.reconciliation import NOTHING_COPIED, Account, Difference, Kind, Verdict


@dataclass(frozen=True, slots=True)
class ProvenRange:
    """One stretch that was looked at."""

    topic: str
    partition: int
    source_start: int
    source_end: int
    target_start: int
    target_end: int
    rows: int
    records: int
    """Mapped by the ledger."""
    opened: int
    """Records that were compared one by one; 0 where digests told all."""
    equal: bool


@dataclass(frozen=True)
class Reconciliation:
    """One reconciliation of one flow."""

    flow: str
    run: str
    at_ms: int
    scope: str
    """In words: what was looked at."""
    differences: tuple[Difference, ...] = ()
    proven: tuple[ProvenRange, ...] = ()
    tally: Mapping[Kind, int] = field(default_factory=dict)
    """Records by what was found of them."""
    gaps: Mapping[str, int] = field(default_factory=dict)
    """Source offsets of the looked-at rows that have no record on the target, by kind, as the ledger counts them."""
    account: Account = NOTHING_COPIED
    """Of every source offset up to the positions, looked at now or before: what became of it."""
    bytes_crossed: int = 0
    """That came from the source to where it was compared."""
    bytes_read: int = 0
    """Of both logs."""
    aborted_on_target: int = 0
    """Offsets there with records of attempts that were rolled back, which only readers of uncommitted records see."""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    report: str | None = None
    """Where the report was written."""
    bounded: bool = False
    """It was asked to leave something out altogether: some topics, or what was copied before."""

    @property
    def verdict(self) -> Verdict:
        return Verdict.DIFFERENT if self.differences else Verdict.EQUAL

    def says_nothing_of_the_rest(self, before: LastVerdict | None) -> bool:
        """Whether something else may differ still, by the verdict before: what was left out may be where."""
        return self.bounded and not self.differences and before is not None and before.verdict == Verdict.DIFFERENT

    @property
    def ranges(self) -> int:
        return len(self.proven)

    @property
    def records(self) -> int:
        """Records that were looked at, by digest or one by one."""
        return sum(one.records for one in self.proven)

    @property
    def opened(self) -> int:
        return sum(one.opened for one in self.proven)

    @property
    def kinds(self) -> dict[str, int]:
        """How many records, rows or settings differ, by kind."""
        found: dict[str, int] = {}
        for one in self.differences:
            found[one.kind.value] = found.get(one.kind.value, 0) + one.count
        return found

    @property
    def sentence(self) -> str:
        """The answer for people."""
        what = f"{self.records:,} records in {self.ranges:,} ranges"
        if self.verdict is Verdict.EQUAL:
            return f"{self.flow}: equal: {what}"
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.kinds.items()))
        return f"{self.flow}: different: {kinds}; looked at {what}"

    def to_json(self) -> dict[str, Any]:
        return {
            "flow": self.flow,
            "run": self.run,
            "at_ms": self.at_ms,
            "scope": self.scope,
            "verdict": self.verdict.value,
            "differences": [one.to_json() for one in self.differences],
            "ranges": self.ranges,
            "records": self.records,
            "opened": self.opened,
            "tally": {kind.value: count for kind, count in self.tally.items() if count},
            "gaps": dict(self.gaps),
            "account": asdict(self.account),
            "bytes_crossed": self.bytes_crossed,
            "bytes_read": self.bytes_read,
            "aborted_on_target": self.aborted_on_target,
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
            "report": self.report,
        }
