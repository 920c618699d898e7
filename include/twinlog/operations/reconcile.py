"""Reconciliation: proof that the twin is equal, or which offsets differ.

    look      the ledger behind the barrier, both logs' ends and rules, holes                (reconcile_look)
    choose    what is new, and of the rest what was proven longest ago                       (ledger.proof_choice)
    prove     both logs against the ledger by digest, records one by one where that can't tell (cluster.prover)
    look up   the later records that justify what a log cleaner has removed
    beside    settings, permissions and checkpoints
    keep      what was proven when, the verdict, and the report

Nothing is changed on either cluster, and nothing in the ledger but that it is brought up to date with the journal.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from twinlog.cluster.proof_order import Block, BlockReport, KeyLookup, Level, ProofOrder, ProofSettings
from twinlog.cluster.prover import prove_here
from twinlog.cluster.raw import RawClient
from twinlog.cluster.source_partition import FetchSettings, Patience
from twinlog.ledger.proof_choice import Choice
from twinlog.ledger.proof_state import LastVerdict, ProofState, ProofStore, Stretch, replaced
from twinlog.ledger.store import Ledger
from twinlog.model.reconciliation import Difference
from twinlog.model.topology import Flow, Topology
from twinlog.operations.flow_gate import SOURCE_LEADS, record_of
from twinlog.operations.mirror import new_run_id
from twinlog.operations.proof_plan import ProofPlan, plan_proof, shared_out
from twinlog.operations.reconcile_beside import compare_beside
from twinlog.operations.reconcile_evidence import Evidence, Executor, lookups_for, with_digests
from twinlog.operations.reconcile_look import EVERYTHING_NEW, Look, Scope, look
from twinlog.operations.reconcile_recovered import without_recovered
from twinlog.operations.reconcile_report import write_report
from twinlog.operations.reconcile_result import ProvenRange, Reconciliation
from twinlog.operations.run_scope import Ends
from twinlog.operations.way_back import meets_another

__all__ = ["EVERYTHING_NEW", "Reconciling", "Scope", "prove_here"]

LEAST_FETCH_BYTES = 4 * 1024 * 1024
"""Of one partition; a proof reads few partitions far, where a consumer reads many a little."""
_DAY_MS = 24 * 3600 * 1000


class Reconciling:
    """A flow and everything that a reconciliation of it needs."""

    def __init__(self, topology: Topology, flow: Flow, ends: Ends, ledger: Ledger) -> None:
        self._topology = topology
        self._flow = flow
        self._ends = ends
        self._ledger = ledger
        self._store = ProofStore(ledger)

    def run(
        self,
        scope: Scope = EVERYTHING_NEW,
        execute: Executor = prove_here,
        *,
        tasks: int = 1,
        beside_source: Executor | None = None,
    ) -> Reconciliation:
        """Compare once. `beside_source` carries out the source's half of the digests near the source, so that only they
        cross the distance."""
        started, now_ms = time.monotonic(), int(time.time() * 1000)
        state = self._store.load()
        empty = Reconciliation(self._flow.name, new_run_id(), now_ms, scope.words, bounded=scope.is_bounded)
        with self._ends.target.raw() as target, self._ends.source.raw(beside=target) as source:
            record = target.run(record_of(self._flow, target))
            leads = record.state in SOURCE_LEADS
            # A target that has ever led has records of its own in the twins.
            alone = leads and self._is_alone(source) and not record.came_home
            due = scope.full or scope.deep or state.journal_compared_ms < now_ms - self._within_ms
            seen = look(self._flow, self._ends, self._ledger, source, target, scope, state, compare_journal=due)
        if seen is None:
            note = f"{self._flow.name} has never run, so there is nothing to compare"
            return replace(empty, notes=(note,), seconds=time.monotonic() - started)
        plan = plan_proof(
            seen.groups,
            seen.source,
            seen.target,
            state.stretches,
            self._choice(scope, state, now_ms),
            now_ms=now_ms,
            sole_writer=alone,
        )
        evidence = self._prove(plan, scope, now_ms, execute, tasks, beside_source)
        self._justify(evidence, scope, now_ms, execute, tasks)
        recovered = tuple(without_recovered(self._ledger, seen, evidence))
        beside = compare_beside(self._topology, self._flow, self._ends, self._ledger, scope.takes)
        result = replace(
            empty,
            differences=_in_order((*seen.differences, *plan.stuck, *evidence.differences, *beside.differences)),
            proven=tuple(_range(one, evidence.holds(one)) for one in evidence.blocks),
            tally=+evidence.tally,
            gaps=seen.gaps,
            account=seen.account,
            bytes_crossed=evidence.crossed_bytes,
            bytes_read=evidence.source_bytes + evidence.target_bytes,
            aborted_on_target=sum(one.aborted for one in evidence.blocks),
            notes=(*([] if leads else [self._promoted]), *self._left_out(plan), *recovered, *beside.notes),
            seconds=time.monotonic() - started,
        )
        return self._keep(result, seen, state, evidence, scope)

    @property
    def _promoted(self) -> str:
        return f"{self._flow.name} has failed over: what was written on {self._flow.target} since is not called foreign"

    def _left_out(self, plan: ProofPlan) -> Iterator[str]:
        if plan.hidden:
            yield (
                f"{plan.hidden:,} ranges were committed on {self._flow.target} just now, or lie behind a transaction "
                "that is open there: they are left to the next run"
            )

    def _is_alone(self, source: RawClient) -> bool:
        return self._flow.naming == "prefixed" or not meets_another(self._topology, self._flow, source)

    @property
    def _within_ms(self) -> int:
        return int(self._flow.reconcile_everything_within_days * _DAY_MS)

    def _choice(self, scope: Scope, state: ProofState, now_ms: int) -> Choice:
        if scope.full or scope.since_ms is not None:
            return Choice(full=scope.full and scope.since_ms is None, since_ms=scope.since_ms)
        last_ms = now_ms if state.last_run_ms is None else state.last_run_ms
        return Choice(
            again_share=max(0, now_ms - last_ms) / self._within_ms,
            overdue_before_ms=now_ms - self._within_ms,
        )

    def _prove(  # noqa: PLR0917 - the plan, and by whom it is carried out
        self,
        plan: ProofPlan,
        scope: Scope,
        now_ms: int,
        execute: Executor,
        tasks: int,
        beside_source: Executor | None,
    ) -> Evidence:
        evidence = Evidence()
        shares = shared_out(plan.blocks, tasks)
        if not shares:
            return evidence
        level = Level.RECORDS if scope.deep else Level.DIGESTS
        if beside_source is not None and not scope.deep:
            near = beside_source(self._orders(shares, [], scope, now_ms, Level.SOURCE_DIGESTS))
            evidence.source_bytes += sum(report.source_bytes for report in near)
            shares = [with_digests(share, report) for share, report in zip(shares, near, strict=True)]
        evidence.take(execute(self._orders(shares, [], scope, now_ms, level)))
        return evidence

    def _justify(self, evidence: Evidence, scope: Scope, now_ms: int, execute: Executor, tasks: int) -> None:
        """Look up the later records for which log cleaners have removed what one side lacks."""
        if not evidence.needs:
            return
        with self._ends.target.raw() as target, self._ends.source.raw(beside=target) as source:
            lookups = lookups_for(evidence.needs, source, target)
        shares: list[list[Block]] = [[] for _ in range(min(tasks, len(lookups)))]
        evidence.settle(execute(self._orders(shares, lookups, scope, now_ms, Level.DIGESTS)) if shares else [])

    def _orders(
        self, shares: Sequence[Sequence[Block]], lookups: Sequence[KeyLookup], scope: Scope, now_ms: int, level: Level
    ) -> list[ProofOrder]:
        rate = scope.rate or self._flow.reconcile_throttle or 0.0
        settings = ProofSettings(
            self._flow.name,
            self._flow.source,
            self._flow.target,
            level,
            now_ms,
            rate * 1e6 / max(1, len(shares)),
            self._fetch_settings(),
        )
        return [
            ProofOrder(
                settings,
                tuple(share),
                tuple(lookups[number :: len(shares)]),
                dict(self._ends.reading.settings),
                dict(self._ends.target.settings),
            )
            for number, share in enumerate(shares)
        ]

    def _fetch_settings(self) -> FetchSettings:
        reading = self._ends.reading.settings
        return FetchSettings(
            max_bytes=int(reading["fetch.max.bytes"]),
            max_wait_ms=int(reading["fetch.max.wait.ms"]),
            partition_max_bytes=max(int(reading["max.partition.fetch.bytes"]), LEAST_FETCH_BYTES),
            rack=reading.get("client.rack", ""),
            patience=Patience(
                int(reading["retries"]),
                int(reading["retry.backoff.ms"]) / 1000,
                int(reading["retry.backoff.max.ms"]) / 1000,
            ),
        )

    def _keep(
        self, result: Reconciliation, seen: Look, state: ProofState, evidence: Evidence, scope: Scope
    ) -> Reconciliation:
        """Leave what the next run, the status and people need."""
        proven, disproven = (
            [_stretch(one, result.at_ms, scope) for one in evidence.blocks if evidence.holds(one) is holds]
            for holds in (True, False)
        )
        kept = ProofState(
            replaced(state.stretches, proven, disproven),
            state.last_run_ms if scope.is_bounded else result.at_ms,
            seen.journal_id,
            seen.recorded,
            result.at_ms if seen.journal_compared else state.journal_compared_ms,
        )
        try:
            result = write_report(self._store.folder, result, self._topology, self._flow)
            self._store.save(kept)
            if result.differences or not result.says_nothing_of_the_rest(self._store.last()):
                self._store.say(
                    LastVerdict(result.verdict.value, result.at_ms, len(result.differences), result.scope, result.kinds)
                )
        except OSError as failed:
            note = f"{self._flow.name}: what was found could not be kept beside the ledger: {failed}"
            return replace(result, notes=(*result.notes, note))
        return result


def _stretch(one: BlockReport, at_ms: int, scope: Scope) -> Stretch:
    return Stretch(
        str(one.pair.source_topic_id),
        str(one.pair.target_topic_id),
        one.pair.partition,
        one.source.start,
        one.source.end,
        one.target.end,
        at_ms,
        scope.deep,
    )


def _range(one: BlockReport, equal: bool) -> ProvenRange:
    return ProvenRange(
        one.pair.source_topic,
        one.pair.partition,
        one.source.start,
        one.source.end,
        one.target.start,
        one.target.end,
        one.rows,
        sum(one.tally.values()) + len(one.needs),
        one.opened,
        equal,
    )


def _in_order(found: Iterable[Difference]) -> tuple[Difference, ...]:
    return tuple(
        sorted(
            found,
            key=lambda one: (
                one.topic or "",
                -1 if one.partition is None else one.partition,
                -1 if one.source_offset is None else one.source_offset,
                -1 if one.target_offset is None else one.target_offset,
            ),
        )
    )
