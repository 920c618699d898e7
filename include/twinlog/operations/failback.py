"""Failback: the way back after the source of a flow that had failed over has returned.

    begin      the flow is failing back: no scheduler runs it, its writers are fenced, the failback alone gets its lease
    export     what was stranded on the source is kept as Parquet
    settle     and is left there, sent to a topic of its own, or appended on the target: the positions stand behind it
    delete     (what is rebuilt) the topics on the source are deleted by the ids that were approved, and made anew
    home       what was written on the target goes home, by runs of the way home, while producers still write there
    seam       they have stopped, and the last of it is home
    over       the flow itself passes over what came home, so that nothing of it is mirrored again
    groups     go on, on the source, where they stopped on the target
    prove      both logs are compared
    resume     the flow is active
    hooks      whoever is to be told is told

What always holds:
- nothing that came from the source is sent back to it, and nothing that went home is mirrored again: the journals of
  both directions say which offsets those are. Only of topics that are rebuilt does everything go home;
- a step that is done is recorded in the flow's record on the target, and may be done again: who dies anywhere leaves a
  flow that is failing back, and the next call goes on with the same plan;
- positions move past stranded records in the transaction that journals them as a gap, as copying does it;
- the seam is cut only when the target's log ends have stood still and all of it is home. Producers that went on
  writing on the target would be heard of no more, so the failback waits for them, and ends where they don't stop.

Under prefixed names what was written on lon to `nyc.orders` goes home to `orders`. What was written there to lon's own
`orders` is the business of the topology's own flow lon->nyc, if it has one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from twinlog.cluster.copy_order import Executor
from twinlog.cluster.fencing import fence_lanes
from twinlog.cluster.inventory import max_batch_bytes
from twinlog.cluster.raw import RawClient
from twinlog.cluster.stranded_writer import StrandedWriter
from twinlog.errors import FailbackError, FlowStateError
from twinlog.ledger.failbacks import Failbacks
from twinlog.ledger.store import Ledger
from twinlog.model.description import described
from twinlog.model.failback import STEPS, FailbackProgress, Stranded, StrandedSpan, stranded
from twinlog.model.findings import FindingKind
from twinlog.model.flow_state import FlowRecord, State
from twinlog.model.reconciliation import Difference, Kind, Verdict
from twinlog.model.topology import Flow, Topology
from twinlog.operations.directions import with_way_home
from twinlog.operations.failback_groups import move_groups_home
from twinlog.operations.failback_look import STRANDED_TOPIC, FailbackLooking, stranded_parts
from twinlog.operations.failback_plan import LISTED_AT_MOST, FailbackPlan, FailbackRequest, FailbackResult
from twinlog.operations.failback_topics import make_anew, make_stranded_topics
from twinlog.operations.flow_gate import record_of
from twinlog.operations.hooks import Event, run_hooks
from twinlog.operations.lease import flow_store, held
from twinlog.operations.mirror import Limits, Mirror
from twinlog.operations.progress import Show
from twinlog.operations.reconcile import Reconciling
from twinlog.operations.run_scope import Ends
from twinlog.operations.seam import Seam
from twinlog.operations.write_blocking import block, plan_block, unblock

QUIET_S = 5.0
"""How long nothing may have been written on the target before the seam is cut."""
SEAM_WITHIN_S = 600.0
_MOST_RUNS = 100
_BESIDE = frozenset({Kind.SETTING, Kind.PARTITIONS, Kind.PERMISSION, Kind.GROUP})
"""What a reconciliation finds beside records."""


@dataclass(frozen=True)
class Failback:
    """A flow and everything that its failback needs."""

    topology: Topology
    flow: Flow
    ends: Ends
    home_ends: Ends
    """The same clusters the other way round, as the way home reaches them."""
    ledger: Ledger
    show: Show | None = None
    say: Callable[[str], None] = field(default=lambda _: None)
    """Told, in a sentence, of every step that begins."""
    quiet_s: float = QUIET_S
    seam_within_s: float = SEAM_WITHIN_S

    @property
    def looking(self) -> FailbackLooking:
        return FailbackLooking(self.topology, self.flow, self.ends, self.ledger)

    def plan(self, request: FailbackRequest) -> FailbackPlan:
        """What a failback would do now, kept beside the ledger; changes nothing else."""
        plan = self.looking.plan(request)
        if not plan.refused and plan.state == State.FAILED_OVER:
            Failbacks(self.ledger).keep(plan.id, plan.to_json())
        return plan

    def kept_plan(self, plan_id: str) -> FailbackPlan:
        """The plan that somebody has approved."""
        said = Failbacks(self.ledger).read(plan_id)
        if said is None:
            raise FailbackError(f"{self.flow.name}: there is no plan {plan_id} beside the ledger; make one first")
        return FailbackPlan.from_json(said)

    def carry_out(self, plan: FailbackPlan, execute: Executor, *, tasks: int) -> FailbackResult:
        """Do what is left of the plan; what stops it is in the result, and the next call goes on there."""
        if plan.refused:
            return FailbackResult(plan, failure="; ".join(plan.refused))
        started = time.monotonic()
        doing = _Doing(self, plan, execute, tasks)
        progress = self._begun(plan)
        failure = None
        try:
            for step in progress.left:
                self.say(f"{self.flow.name}: {step}")
                getattr(doing, step.value)()
                progress = self._noted(progress.after(step))
        except FailbackError as stopped:
            failure = str(stopped)
        result = FailbackResult(
            plan,
            STEPS[: progress.done],
            failure,
            doing.figures,
            tuple(dict.fromkeys(doing.warnings)),
            time.monotonic() - started,
        )
        Failbacks(self.ledger).keep(plan.id, {**plan.to_json(), "result": result.to_json() | {"plan": plan.id}})
        return result

    def abandon(self) -> str:
        """End a failback that is under way; the flow is failed over again, and what went home stays there."""
        with self.ends.target.raw() as target:

            def decide(found: FlowRecord) -> FlowRecord:
                if found.state is not State.FAILING_BACK:
                    raise FlowStateError(f"{self.flow.name} is {found.state}: no failback is under way")
                return replace(found.moved_to(State.FAILED_OVER, self.flow.name), lease=None)

            target.run(flow_store(self.flow, target).change(decide))
            record = target.run(record_of(self.flow, target))
            target.run(fence_lanes(target, self.flow.name, max(record.lanes, record.retiring_lanes)))
        return f"{self.flow.name} is failed over again; what went home stays on {self.flow.source}"

    def _begun(self, plan: FailbackPlan) -> FailbackProgress:
        """The flow's record says who fails back, before anything is done."""

        def decide(found: FlowRecord) -> FlowRecord:
            if found.failback is not None and found.failback.id == plan.id:
                return found
            if found.state is State.FAILING_BACK and found.failback is not None and found.failback.under_way:
                raise FlowStateError(
                    f"{self.flow.name}: failback {found.failback.id} is under way; carry that one on, or abandon it"
                )
            moved = found.moved_to(State.FAILING_BACK, self.flow.name)
            return replace(moved, failback=FailbackProgress(plan.id), came_home=True)

        with self.ends.target.raw() as target:
            record = target.run(flow_store(self.flow, target).change(decide))
        if record is None or record.failback is None:
            raise FlowStateError(f"{self.flow.name}: the failback could not be noted")
        return record.failback

    def _noted(self, progress: FailbackProgress) -> FailbackProgress:
        def decide(found: FlowRecord) -> FlowRecord:
            if found.failback is None or found.failback.id != progress.id:
                raise FlowStateError(f"{self.flow.name}: another failback has begun; this one ends here")
            ended = int(time.time() * 1000) if not progress.left else 0
            return replace(found, failback=replace(progress, ended_at_ms=ended))

        with self.ends.target.raw() as target:
            target.run(flow_store(self.flow, target).change(decide))
        return progress


class _Doing:
    """The steps of one failback; each method is a step, by its name."""

    def __init__(self, failback: Failback, plan: FailbackPlan, execute: Executor, tasks: int) -> None:
        self.figures: dict[str, Any] = {}
        self.warnings: list[str] = []
        self._failback = failback
        self._flow = failback.flow
        self._plan = plan
        self._execute = execute
        self._tasks = tasks
        self._anew = frozenset(plan.anew)
        self._topology, self._home = with_way_home(failback.topology, failback.flow, self._anew)
        self._home_ledger = Ledger(self._topology.ledger_for(self._home), self._home.source, self._home.target)

    def begin(self) -> None:
        with self._failback.ends.target.raw() as target:
            record = target.run(record_of(self._flow, target))
            target.run(fence_lanes(target, self._flow.name, max(record.lanes, record.retiring_lanes)))

    def export(self) -> None:
        kept = Failbacks(self._failback.ledger)
        part = 0
        with self._both() as (source, target):
            for span in self._spans(source, target):
                for records in stranded_parts(source, span):
                    if records:
                        kept.export(self._plan.id, part, records)
                        part += 1
        self.figures["stranded_records"] = kept.exported(self._plan.id).num_rows
        if part:
            self.figures["stranded_kept"] = kept.place(self._plan.id)

    def settle(self) -> None:
        chosen = self._plan.request.stranded
        if chosen is Stranded.APPEND:
            # The flow itself copies them, as it would have done then; what is rebuilt has nothing to append.
            limits = self._limits({row.topic for row in self._plan.stranded})
            for _ in range(_MOST_RUNS):
                if self._copy(limits) == 0:
                    return
        with self._both() as (source, target):
            spans = self._spans(source, target)
            if spans:
                self._pass_over(source, target, spans, to_topics=chosen is Stranded.TOPIC)

    def delete(self) -> None:
        if not self._anew:
            return
        approved = {name: UUID(topic_id) for name, topic_id in self._plan.delete.items()}
        wanted = {twin: self._plan.topics[twin] for twin in sorted(self._anew)}
        with self._both() as (source, target):
            problems = make_anew(source, target, approved, wanted)
        if problems:
            raise FailbackError("; ".join(problems))

    def home(self) -> None:
        with self._both() as (source, target):
            # What a switchover closed would keep what goes home out as well.
            opened = unblock(self._flow, source, target)
        if opened:
            self.figures["unblocked"] = opened
        for _ in range(_MOST_RUNS):
            if self._run_home() == 0:
                return

    def seam(self) -> None:
        seam = Seam(self._home, self._failback.home_ends, sorted(self._plan.topics), self._failback.quiet_s)
        if self._plan.request.block_writes:
            self._block()
        seam.cut(self._run_home, time.monotonic() + self._failback.seam_within_s)

    def over(self) -> None:
        """Nothing is left to copy when this ends: all that the source has beyond the positions came home."""
        homes = set(self._plan.topics.values())
        limits = self._limits(homes)
        seam = Seam(self._flow, self._failback.ends, sorted(homes), quiet_s=0.0)
        seam.cut(lambda: self._copy(limits), time.monotonic() + self._failback.seam_within_s)

    def groups(self) -> None:
        access = self._failback.home_ends
        moved = move_groups_home(self._topology, self._home, access.source, access.target, self._home_ledger)
        self.figures |= {
            "groups": moved.groups,
            "groups_moved": list(moved.moved),
            "groups_left_out": list(moved.left_out),
            "read_again": moved.read_again,
        }
        self.warnings += moved.warnings

    def prove(self) -> None:
        """Both logs in both directions, as reconciliation compares them; what differs is told, and holds nothing up.

        Settings and permissions are not judged: they are the flow's again as soon as it runs.
        """
        failback = self._failback
        differences: list[Difference] = []
        for flow, ends, ledger in (
            (self._flow, failback.ends, failback.ledger),
            (self._home, failback.home_ends, self._home_ledger),
        ):
            found = Reconciling(self._topology, flow, ends, ledger).run()
            differences += [one for one in found.differences if one.kind not in _BESIDE]
            self.figures[f"compared_{'home' if flow is self._home else 'onward'}"] = found.records
        self.figures["verdict"] = str(Verdict.DIFFERENT if differences else Verdict.EQUAL)
        self.figures["differences"] = [one.to_json() for one in differences[:LISTED_AT_MOST]]
        self.warnings += [
            f"{one.kind}: {one.topic}-{one.partition}, source offset {one.source_offset}, target offset "
            f"{one.target_offset} {one.detail}".rstrip()
            for one in differences[:LISTED_AT_MOST]
        ]

    def resume(self) -> None:
        def decide(found: FlowRecord) -> FlowRecord:
            return found if found.state is State.ACTIVE else found.moved_to(State.ACTIVE, self._flow.name)

        with self._both() as (source, target):
            target.run(flow_store(self._flow, target).change(decide))
            unblock(self._home, target, source)

    def hooks(self) -> None:
        clusters = self._failback.topology.clusters
        told = {
            "plan": self._plan.id,
            "active": self._flow.source,
            "bootstrap_servers": clusters[self._flow.source].bootstrap_servers,
        }
        results = run_hooks(self._flow, Event.FAILED_BACK, told)
        self.figures["hooks"] = [one.to_json() for one in results]
        self.warnings += [one.failure for one in results if one.failure is not None]

    def _run_home(self) -> int:
        """One run of the way home; how many records it brought, 0 where nothing was left."""
        mirror = Mirror(
            self._topology, self._home, self._failback.home_ends, self._home_ledger, show=self._failback.show
        )
        result = mirror.run(self._execute, tasks=self._tasks, limits=self._limits(set(self._plan.topics)))
        if result.skipped is not None:
            raise FailbackError(f"{self._home.name} could not run: {result.skipped}")
        # A topic that was rebuilt once more is not the one that was filled then, and the seam sees to the rest.
        findings = (
            one
            for one in result.findings
            if one.kind is not FindingKind.TARGET_REPLACED or one.partition.topic not in self._anew
        )
        self._demand(replace(result, findings=tuple(findings)).failures, self._home.name)
        self.figures["came_home"] = self.figures.get("came_home", 0) + result.recorded.records
        self.warnings += [note for note in result.notes if note]
        return result.recorded.records + result.left_records

    def _copy(self, limits: Limits) -> int:
        """One run of the flow itself, while it fails back."""
        if not limits.topics:
            return 0
        mirror = Mirror(
            self._topology,
            self._flow,
            self._failback.ends,
            self._failback.ledger,
            show=self._failback.show,
            state=State.FAILING_BACK,
        )
        result = mirror.run(self._execute, tasks=self._tasks, limits=limits)
        if result.skipped is not None:
            raise FailbackError(f"{self._flow.name} could not run: {result.skipped}")
        # That a topic was made anew, this failback knows better than anybody.
        expected = (FindingKind.RECREATED, FindingKind.EXPIRED)
        wrong = replace(result, findings=tuple(one for one in result.findings if one.kind not in expected))
        self._demand(wrong.failures, self._flow.name)
        self.figures["appended"] = self.figures.get("appended", 0) + result.recorded.records
        return result.recorded.records + result.left_records

    def _block(self) -> None:
        """Nobody but us writes to the twins until the flow is active again."""
        access = self._failback.home_ends.source
        planned = plan_block(self._topology, self._home, access, sorted(self._plan.topics))
        self.warnings += planned.open
        with self._both() as (source, target):
            block(self._home, target, source, planned.denials)
        self.figures["blocked"] = len(planned.denials)

    def _demand(self, failures: list[str], flow: str) -> None:
        if failures:
            raise FailbackError(f"{flow}: {'; '.join(failures)}")

    def _limits(self, topics: set[str]) -> Limits:
        return Limits(topics=frozenset(topics))

    def _both(self) -> _Clients:
        return _Clients(self._failback.ends)

    def _spans(self, source: RawClient, target: RawClient) -> list[StrandedSpan]:
        """What is stranded now; what was settled by an earlier try no longer is."""
        looking = self._failback.looking
        found = looking.survey(source, target, looking.mirrored(target))
        return [span for span in stranded(found) if span.pair.target_topic not in self._anew]

    def _pass_over(self, source: RawClient, target: RawClient, spans: list[StrandedSpan], *, to_topics: bool) -> None:
        topics: Mapping[str, str] = {}
        if to_topics:
            topics = {span.pair.source_topic: span.pair.source_topic + STRANDED_TOPIC for span in spans}
            make_stranded_topics(source, target, topics)
        forgotten = self._failback.looking.mirrored(target).forgotten
        access, ours = self._failback.ends.target, described(self._failback.topology, self._flow)
        run = f"failback-{self._plan.id}"
        with held(self._flow, access, target, run, ours=ours, state=State.FAILING_BACK) as lease:
            if lease.refused is not None:
                raise FailbackError(lease.refused)
            writer = StrandedWriter(
                source,
                target,
                flow_store(self._flow, target),
                self._flow.name,
                self._flow.source,
                self._flow.target,
                lease.holder,
                lease.record.lanes,
                forgotten,
                target.run(max_batch_bytes(target, set(topics.values()))),
            )
            passed = target.run(writer.pass_over(spans, topics))
        self.figures["stranded_sent" if to_topics else "stranded_left"] = passed


class _Clients:
    """Both clusters of the flow, as a context."""

    def __init__(self, ends: Ends) -> None:
        self._ends = ends

    def __enter__(self) -> tuple[RawClient, RawClient]:
        self._target = self._ends.target.raw()
        target = self._target.__enter__()
        self._source = self._ends.source.raw(beside=target)
        return self._source.__enter__(), target

    def __exit__(self, *error: Any) -> None:
        self._source.__exit__(*error)
        self._target.__exit__(*error)
