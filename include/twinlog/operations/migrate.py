"""A migration: a cluster moved for good, phase by phase, as `twinlog.model.migration` has them.

Each phase can be done again and comes to the same, and which one it is at is kept on the target: whatever ends a
migration, the next call goes on from there, on any machine. `Migrating.run` is the whole of it in one go, up to what a
person has to approve; Airflow takes the phases one by one, each in a task.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from twinlog.cluster.copy_order import Executor
from twinlog.errors import AdoptionError, ClusterError, FlowStateError
from twinlog.ledger.store import Ledger
from twinlog.model.migration import Migration, Phase
from twinlog.model.reconciliation import Verdict
from twinlog.model.topology import Flow, Topology
from twinlog.operations.adopting import Adopting, Adoption, demand_own_twins
from twinlog.operations.adopting import Mirror as OtherMirror
from twinlog.operations.backfill_progress import Left
from twinlog.operations.backfilling import Backfilled, Backfilling, left_of, sum_of
from twinlog.operations.migrate_result import MigrateResult
from twinlog.operations.migration_clean_up import CleaningUp
from twinlog.operations.migration_course import Course
from twinlog.operations.migration_evidence import Evidence, cleaned_up
from twinlog.operations.migration_keeping import Asked, begin, end, migration_of
from twinlog.operations.migration_proof import prove
from twinlog.operations.migration_release import release
from twinlog.operations.migration_report import Reporting
from twinlog.operations.mirror import Mirror, new_run_id
from twinlog.operations.mirror_result import MirrorResult
from twinlog.operations.progress import Show
from twinlog.operations.reconcile import prove_here
from twinlog.operations.reconcile_evidence import Executor as Prover
from twinlog.operations.reconcile_result import Reconciliation
from twinlog.operations.run_scope import NO_LIMITS, Ends, Limits
from twinlog.operations.sync import Sync
from twinlog.operations.taking_turns import Wait, run_in_turn

LIVE_ROUNDS = 100
"""A source that gains faster than ordinary runs copy is told of, and not chased for ever."""

__all__ = ["Asked", "MigrateResult", "Migrating"]


class Migrating:
    """The migration of one flow; `tell` takes a sentence for people, `wait` lets seconds pass."""

    def __init__(
        self,
        topology: Topology,
        flow: Flow,
        ends: Ends,
        ledger: Ledger,
        *,
        show: Show | None = None,
        tell: Callable[[str], None] = lambda _: None,
        wait: Wait = time.sleep,
    ) -> None:
        self._topology = topology
        self._flow = flow
        self._ends = ends
        self._ledger = ledger
        self._show = show
        self._tell = tell
        self._wait = wait
        self.course = Course(flow, ends.target, ledger, tell)

    def begin(self, asked: Asked) -> Migration:
        """The migration under way, with what is asked of it now, or a new one."""
        migration = begin(self._flow, self._ends, asked, new_run_id())
        self.course.evidence(migration).begin()
        return migration

    def look(self, asked: Asked) -> MigrateResult:
        """How far it is, and what is left to copy; nothing is changed."""
        migration = migration_of(self._flow, self._ends.target) or Migration("none yet")
        limits = Limits(
            from_ms=asked.from_ms if asked.from_ms is not None else migration.from_ms,
            from_offsets=asked.from_offsets or migration.begins(),
        )
        left = self._left(limits)
        synced = Sync(self._topology, self._flow, self._ends.source, self._ends.target).run(dry_run=True)
        notes = tuple(f"to be changed: {change.kind} {change.resource}: {change.name}" for change in synced.changes)
        return MigrateResult(
            self._flow.name,
            migration,
            dry_run=True,
            left_records=left.records,
            left_bytes=int(left.bytes),
            notes=(*notes, *synced.warnings),
        )

    def settings(self) -> tuple[Adoption, tuple[str, ...]]:
        """Topics, settings and permissions on the target, and what another mirror has left made ours; what there is
        to say of it."""
        migration = self.course.at(Phase.SETTINGS)
        if migration is None:
            return Adoption(), ()
        # Noted before it is done, so that no sync in between takes it back.
        self.course.change(migration, lambda found: replace(found, holding=True))
        synced = Sync(self._topology, self._flow, self._ends.source, self._ends.target).run()
        if synced.skipped is not None:
            raise FlowStateError(synced.skipped)
        if synced.failed:
            raise ClusterError("; ".join(synced.failed))
        notes = list(synced.warnings)
        if not self._flow.sync_topic_configs_enabled:
            notes.append(
                f"{self._flow.name}: sync.topic.configs.enabled is false, so retention and cleaning on "
                f"{self._flow.target} are not held: what comes late may be deleted by its age"
            )
        adoption = self._adopt(migration)
        notes += adoption.sentences
        if adoption.refused:
            self.course.evidence(migration).note(notes)
            raise AdoptionError(
                f"{'; '.join(adoption.refused)}. Copied from their beginning, they would hold everything twice: delete "
                f"these twins on {self._flow.target}, then go on with `twinlog migrate`, which copies them anew"
            )
        adopted = sum(one.records for one in adoption.adopted)
        said = f"{len(synced.changes):,} changes on {self._flow.target}" + (
            f"; {adopted:,} records of another mirror were compared with the source's and adopted" if adopted else ""
        )
        self.course.move(migration, Phase.BACKFILL, said, notes)
        return adoption, tuple(notes)

    def backfill(self, execute: Executor, *, tasks: int) -> Backfilled:
        """Copy what is there, until little is left."""
        migration = self.course.at(Phase.BACKFILL)
        if migration is None:
            return Backfilled()
        done = Backfilling(
            self._topology,
            self._flow,
            self._ends,
            self._ledger,
            migration,
            show=self._show,
            tell=self._tell,
            wait=self._wait,
        ).run(execute, tasks=tasks)
        said = f"{done.records:,} records, {done.bytes / 1e6:,.1f} MB in {done.runs} runs"
        self.course.move(migration, Phase.LIVE, said, done.warnings)
        return done

    def live(self, execute: Executor, *, tasks: int) -> tuple[str, ...]:
        """Ordinary runs, this one's or a scheduler's, until the flow keeps up; what there is to say of them."""
        migration = self.course.at(Phase.LIVE)
        if migration is None:
            return ()
        mirror = Mirror(self._topology, self._flow, self._ends, self._ledger, show=self._show)
        said: tuple[str, ...] = ()
        for _ in range(LIVE_ROUNDS):
            ran = run_in_turn(mirror, self._flow, self._ends.target, execute, self._tell, self._wait, tasks=tasks)
            said = tuple(dict.fromkeys((*said, *ran.warnings)))
            if not self._left().over(_rate(ran)):
                self.course.move(migration, Phase.PROOF, "the flow keeps up by ordinary runs", said)
                return said
        raise FlowStateError(
            f"{self._flow.name}: after {LIVE_ROUNDS} runs {self._left().records:,} records are still to be copied: its "
            "source gains as fast as it copies; raise its throttle or its lanes, then go on with `twinlog migrate`"
        )

    def prove(self, execute: Prover = prove_here, *, tasks: int = 1) -> Reconciliation | None:
        """Compare everything that both logs hold; None where that has been done."""
        migration = self.course.at(Phase.PROOF)
        if migration is None:
            return None
        topology, flow, ends, ledger = self._topology, self._flow, self._ends, self._ledger
        found = prove(topology, flow, ends, ledger, migration.id, execute, tasks=tasks)
        facts = {"verdict": found.verdict.value, "verdict_sentence": found.sentence, "verdict_report": found.report}
        if found.verdict is Verdict.EQUAL:
            self.course.move(migration, Phase.CUT_OVER, found.sentence, found.notes, **facts)
        else:
            evidence = Evidence(self._ledger, migration.id)
            evidence.write({**evidence.read(), **facts})
        return found

    def clean_up(self, *, without_source: bool = False) -> MigrateResult:
        """Remove what is ours on both clusters; again and again, where it is cut short. A source that was switched off
        is not asked `without_source`."""
        migration = migration_of(self._flow, self._ends.target)
        if migration is None:
            return self._cleaned_up_before()
        cleaning = CleaningUp(self._topology, self._flow, self._ends)
        cleaning.demand_cut_over()
        evidence = self.course.evidence(migration)
        reporting = self._reporting(evidence)
        if not evidence.read().get("cleaning_up"):
            # What the report says of topics and permissions is asked of what is about to be removed.
            reporting.publish(reporting.tables(without_source=without_source))
            evidence.write({**evidence.read(), "cleaning_up": True})
        found = cleaning.run(without_source=without_source)
        removed = list(dict.fromkeys((*evidence.read().get("removed", ()), *found.removed)))
        evidence.done(Phase.CLEAN_UP, f"{len(removed):,} things were removed", removed=removed, left=list(found.left))
        return MigrateResult(
            self._flow.name,
            migration,
            done=() if found.failures else (Phase.CLEAN_UP,),
            notes=found.left,
            failures=found.failures,
            removed=found.removed,
            report=reporting.publish(reporting.kept()),
        )

    def _cleaned_up_before(self) -> MigrateResult:
        known = cleaned_up(self._ledger)
        if known is None:
            raise FlowStateError(f"{self._flow.name} is not being migrated")
        reporting = self._reporting(Evidence(self._ledger, known))
        notes = (f"{self._flow.name} was cleaned up before",)
        migration = Migration(known, Phase.CLEAN_UP)
        report = reporting.publish(reporting.kept())
        return MigrateResult(self._flow.name, migration, done=(Phase.CLEAN_UP,), notes=notes, report=report)

    def give_up(self) -> MigrateResult:
        """End it before its cut-over: what was copied stays, and the flow is one that mirrors."""
        migration = self.course.now()
        if migration.is_cut_over:
            raise FlowStateError(f"{self._flow.name} is cut over, which is not given up but gone back from: failback")
        released = release(self._topology, self._flow, self._ends)
        if not released.failures:
            with self._ends.target.raw() as target:
                end(self._flow, target, migration.id)
            self.course.evidence(migration).note([f"it was given up at its {migration.phase}"])
        notes = (f"{len(released.changes):,} settings on {self._flow.target} are the source's again",)
        return MigrateResult(self._flow.name, migration, notes=notes, failures=released.failures)

    def report(self) -> str:
        """Write the report anew from all that is known; where its page is."""
        reporting = self._reporting(self.course.evidence(self.course.now()))
        return reporting.publish(reporting.tables())

    def _reporting(self, evidence: Evidence) -> Reporting:
        return Reporting(self._topology, self._flow, self._ends, self._ledger, evidence)

    def run(self, asked: Asked, execute: Executor, prove_with: Prover = prove_here, *, tasks: int) -> MigrateResult:
        """Go on from wherever it is, up to what a person has to approve; `execute` copies, `prove_with` compares."""
        before = self.begin(asked)
        adoption, notes = self.settings()
        backfilled = self.backfill(execute, tasks=tasks)
        said = self.live(execute, tasks=tasks)
        proof = self.prove(prove_with, tasks=tasks)
        differs = proof is not None and proof.verdict is not Verdict.EQUAL
        after = self.course.now()
        phases = list(Phase)
        done = tuple(phases[phases.index(before.phase) : phases.index(after.phase)])
        return MigrateResult(
            self._flow.name,
            after,
            done=done,
            backfilled=backfilled,
            adopted=sum(one.records for one in adoption.adopted),
            notes=(*notes, *backfilled.warnings, *said, *(() if proof is None else proof.notes)),
            failures=(proof.sentence,) if proof is not None and differs else (),
            report=self.report(),
        )

    def _adopt(self, migration: Migration) -> Adoption:
        if migration.adopts is None:
            demand_own_twins(self._topology, self._flow, self._ends)
            return Adoption()
        mirror = OtherMirror(migration.adopts)
        topology, flow, ends, ledger = self._topology, self._flow, self._ends, self._ledger
        return Adopting(topology, flow, ends, ledger, mirror, migration.id, self._tell).run()

    def _left(self, limits: Limits = NO_LIMITS) -> Left:
        with self._ends.target.raw() as target, self._ends.source.raw(beside=target) as source:
            return sum_of(left_of(self._topology, self._flow, source, target, limits).values())


def _rate(ran: MirrorResult) -> float | None:
    return ran.recorded.bytes / ran.seconds if ran.seconds and ran.recorded.bytes else None
