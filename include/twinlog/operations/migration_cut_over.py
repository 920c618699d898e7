"""The cut-over of a migration: a plan for somebody to approve, and the switchover that carries it out.

    plan      where each group would go on, kept beside the ledger; made anew whenever it is asked for
    approve   noted with who it was and when, before anything is done
    switch    see `switchover`; what stands in its way leaves the flow mirroring, and the migration where it was
    release   retention and cleaning on the target are the source's again

Whoever comes after one that was cut short goes on with the plan that was approved.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from twinlog.cluster.copy_order import Executor
from twinlog.errors import TwinlogError
from twinlog.ledger.store import Ledger
from twinlog.model.flow_state import State
from twinlog.model.migration import Migration, Phase
from twinlog.model.takeover import Request, TakeoverPlan
from twinlog.model.topology import Flow, Topology
from twinlog.operations.flow_gate import record_of
from twinlog.operations.migrate_result import MigrateResult
from twinlog.operations.migration_course import Course
from twinlog.operations.migration_proof import prove
from twinlog.operations.migration_release import release
from twinlog.operations.reconcile import EVERYTHING_NEW, prove_here
from twinlog.operations.reconcile_evidence import Executor as Prover
from twinlog.operations.run_scope import Ends
from twinlog.operations.switchover import Proof, Switchover, SwitchoverResult
from twinlog.operations.switchover_proof import proof_of

WHATEVER_MOVES = Request()


@dataclass(frozen=True)
class CuttingOver:
    """The cut-over of one flow's migration."""

    topology: Topology
    flow: Flow
    ends: Ends
    ledger: Ledger
    course: Course
    switchover: Switchover

    def plan(self, request: Request = WHATEVER_MOVES) -> TakeoverPlan | None:
        """What would be done now, or what was approved and is not at its end; None where it is done."""
        migration = self.course.now()
        if migration.is_cut_over:
            return None
        begun = self._begun(migration)
        if begun is not None:
            return begun
        self.course.at(Phase.CUT_OVER)
        return self.switchover.plan(request)

    def carry_out(
        self,
        plan: TakeoverPlan,
        execute: Executor,
        prove_with: Prover = prove_here,
        *,
        approved_by: str | None,
        tasks: int = 1,
        block_writes: bool = False,
    ) -> MigrateResult:
        """Do what was approved, or what is left of it; `execute` copies, and `prove_with` compares both logs."""
        migration = self._approved(plan, approved_by)
        if migration is None:
            return MigrateResult(self.flow.name, self.course.now())

        def proof() -> Proof:
            found = prove(
                self.topology,
                self.flow,
                self.ends,
                self.ledger,
                migration.id,
                prove_with,
                tasks=tasks,
                scope=EVERYTHING_NEW,
            )
            return proof_of(found)

        try:
            switched = self.switchover.apply(plan, execute, proof, tasks=tasks, block_writes=block_writes)
        except TwinlogError:
            if self._state() is not State.FAILED_OVER:
                self.course.go_to(migration, Phase.CUT_OVER)
            raise
        return self._ended(migration, switched)

    def _begun(self, migration: Migration) -> TakeoverPlan | None:
        """The plan that is being carried out, be it by `twinlog switchover` or `failover` itself."""
        with self.ends.target.raw() as target:
            record = target.run(record_of(self.flow, target))
        if record.state is State.FAILED_OVER and record.takeover is not None:
            return self.switchover.failover.kept(record.takeover.plan)
        if migration.phase is not Phase.SWITCHOVER:
            return None
        # It was approved, and cut short before the flow was taken over: there is nothing yet that would bind anybody.
        self.course.go_to(migration, Phase.CUT_OVER)
        return None

    def _approved(self, plan: TakeoverPlan, approved_by: str | None) -> Migration | None:
        """The migration at its switchover, with who approved that noted first; None where all of it is done."""
        migration = self.course.now()
        if migration.is_cut_over:
            return None
        if migration.phase is Phase.SWITCHOVER:
            return migration
        self.course.at(Phase.CUT_OVER)
        said = f"{plan.groups:,} groups move by the plan {plan.id}, approved by {approved_by or 'nobody by name'}"
        now_ms = int(time.time() * 1000)
        self.course.move(
            migration, Phase.SWITCHOVER, said, plan=plan.id, approved_by=approved_by, approved_at_ms=now_ms
        )
        return self.course.now()

    def _ended(self, migration: Migration, switched: SwitchoverResult) -> MigrateResult:
        takeover = switched.takeover
        released = release(self.topology, self.flow, self.ends)
        failures = (*takeover.failures, *released.failures)
        # That is past mending by another try: it is told, here and in the report, and people see to it.
        late = () if switched.late is None else (switched.late,)
        notes = (*takeover.plan.notes, *switched.notes, *late)
        left = [[row.group, row.topic, row.partition, row.reason] for row in takeover.moved.left_out]
        if failures:
            self.course.evidence(migration).note((*notes, *failures))
            return MigrateResult(self.flow.name, migration, notes=notes, failures=failures)
        said = (
            f"{self.flow.target} has taken over: {takeover.moved.groups:,} groups and "
            f"{takeover.moved.committed:,} offsets moved, {len(released.changes):,} settings are the source's again"
        )
        self.course.change(migration, lambda found: replace(found, holding=False))
        self.course.move(migration, Phase.CLEAN_UP, said, notes, not_moved=left)
        return MigrateResult(self.flow.name, self.course.now(), done=(Phase.SWITCHOVER,), notes=notes, failures=late)

    def _state(self) -> State:
        with self.ends.target.raw() as target:
            return target.run(record_of(self.flow, target)).state
