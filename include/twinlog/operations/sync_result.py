"""What a sync found and did, as DAGs, the command line and the page show it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from twinlog.model.sync_plan import Change, SyncPlan
from twinlog.operations.preflight import PreflightWarning


@dataclass(frozen=True, slots=True)
class ScramUser:
    """A user of the source whose password Kafka keeps."""

    user: str
    mechanisms: tuple[str, ...]
    on_target: bool | None
    """None where the target does not let us see its users."""


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """A limit of the source, and the target's."""

    entity: str
    key: str
    value: float
    on_target: float | None


NOTHING = SyncPlan()


@dataclass(frozen=True)
class SyncResult:
    """One sync of one flow."""

    flow: str
    plan: SyncPlan = NOTHING
    dry_run: bool = False
    skipped: str | None = None
    """Why nothing was looked at, in a sentence."""
    failed: tuple[str, ...] = ()
    """What could not be read or changed, each a sentence; everything else was."""
    notes: tuple[str, ...] = ()
    scram_users: tuple[ScramUser, ...] = ()
    quotas: tuple[QuotaRow, ...] = ()
    preflight: tuple[PreflightWarning, ...] = ()

    @property
    def changes(self) -> list[Change]:
        return self.plan.changes

    @property
    def applied(self) -> bool:
        """Whether every change was made."""
        return not self.dry_run and self.skipped is None and not self.failed

    @property
    def exit_code(self) -> int:
        wrong = self.failed or self.plan.reports or (self.dry_run and self.changes)
        return 1 if wrong else 0

    @property
    def warnings(self) -> list[str]:
        """Everything that people must know beside the changes, each a sentence."""
        return [*self.failed, *(report.message for report in self.plan.reports), *self.notes]

    def to_json(self) -> dict[str, Any]:
        return {
            "flow": self.flow,
            "skipped": self.skipped,
            "changes": [change.to_json() for change in self.changes],
            "applied": self.applied,
            "failed": list(self.failed),
            "reports": [asdict(report) for report in self.plan.reports],
            "waiting": [{**asdict(deletion), "topic_id": str(deletion.topic_id)} for deletion in self.plan.waiting],
            "notes": list(self.notes),
            "scram_users": [asdict(user) for user in self.scram_users],
            "quotas": [asdict(quota) for quota in self.quotas],
            "preflight": [warning.to_json() for warning in self.preflight],
        }
