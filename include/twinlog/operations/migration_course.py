"""Where a migration is, and how it gets on: its phase on the target, and beside it what is known of each phase.

The evidence is written first and the phase is changed after it, so that a phase that is called done has its evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from twinlog.cluster.access import ClusterAccess
from twinlog.errors import FlowStateError
from twinlog.ledger.store import Ledger
from twinlog.model.migration import Migration, Phase
from twinlog.model.topology import Flow
from twinlog.operations.migration_evidence import Evidence
from twinlog.operations.migration_keeping import change, migration_of


@dataclass(frozen=True)
class Course:
    """The course of one flow's migration; `target` leads to the target, `tell` takes a sentence for people."""

    flow: Flow
    target: ClusterAccess
    ledger: Ledger
    tell: Callable[[str], None] = lambda _: None

    def now(self) -> Migration:
        """The migration as the target keeps it."""
        migration = migration_of(self.flow, self.target)
        if migration is None:
            raise FlowStateError(f"{self.flow.name} is not being migrated; begin with `twinlog migrate`")
        return migration

    def at(self, phase: Phase) -> Migration | None:
        """The migration if it is at this phase; None where that is done. One that is not there yet is an error."""
        migration = self.now()
        phases = list(Phase)
        if phases.index(migration.phase) < phases.index(phase):
            raise FlowStateError(f"the migration of {self.flow.name} is at its {migration.phase}; {phase} comes later")
        return migration if migration.phase is phase else None

    def move(self, migration: Migration, phase: Phase, said: str, notes: Sequence[str] = (), **facts: object) -> None:
        """The phase that `migration` is at is done, and `phase` is next."""
        evidence = self.evidence(migration)
        evidence.done(migration.phase, said, **facts)
        evidence.note(notes)
        self.go_to(migration, phase)
        self.tell(f"{self.flow.name}: {migration.phase}: {said}; next is {phase}")

    def go_to(self, migration: Migration, phase: Phase) -> None:
        """Without anything done."""
        self.change(migration, lambda found: found.moved_to(phase, self.flow.name))

    def change(self, migration: Migration, decide: Callable[[Migration], Migration]) -> Migration:
        with self.target.raw() as target:
            return change(self.flow, target, migration.id, decide)

    def evidence(self, migration: Migration) -> Evidence:
        return Evidence(self.ledger, migration.id)
