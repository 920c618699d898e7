"""How far a migration has come, as DAGs, the command line and the page show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from twinlog.model.migration import Migration, Phase
from twinlog.operations.backfilling import Backfilled


@dataclass(frozen=True)
class MigrateResult:
    """What one call of it has done."""

    flow: str
    migration: Migration
    dry_run: bool = False
    done: tuple[Phase, ...] = ()
    """The phases that this call has done."""
    waits_for: str | None = None
    """What a person has to do before it goes on, in a sentence."""
    backfilled: Backfilled = field(default_factory=Backfilled)
    adopted: int = 0
    """Records that another mirror had copied."""
    left_records: int = 0
    left_bytes: int = 0
    """What was still to be backfilled when a dry run looked."""
    notes: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    """What keeps it from going on, or was found to be wrong, each a sentence."""
    removed: tuple[str, ...] = ()
    """What a clean-up has removed."""
    report: str | None = None
    """Where the report is."""

    @property
    def exit_code(self) -> int:
        return 1 if self.failures else 0

    def to_json(self) -> dict[str, Any]:
        return {
            "flow": self.flow,
            "migration": self.migration.id,
            "phase": str(self.migration.phase),
            "dry_run": self.dry_run,
            "done": [str(phase) for phase in self.done],
            "waits_for": self.waits_for,
            "runs": self.backfilled.runs,
            "records": self.backfilled.records,
            "bytes": self.backfilled.bytes,
            "seconds": round(self.backfilled.seconds, 3),
            "adopted": self.adopted,
            "left_records": self.left_records,
            "left_bytes": self.left_bytes,
            "notes": list(self.notes),
            "failures": list(self.failures),
            "removed": list(self.removed),
            "report": self.report,
        }
