"""Repair of what a reconciliation has found; never without a plan, and never silently.

    settings       what a sync would change is changed
    ledger         rebuilt from the journal
    recover        what a twin lacks is appended to a topic of its own beside it
    recopy         a twin is copied again into a fresh topic, which takes its place (see `recopy`)
    checkpoints    written anew
    prove          what was repaired is compared again

The plan is kept beside the ledger before anything is done, so what is carried out is what was approved. Every step may
be done again: who dies anywhere leaves a plan that the next call goes on with, or that is abandoned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from twinlog.cluster.inventory import max_batch_bytes, settled_metadata, settled_offsets
from twinlog.cluster.log_offsets import OffsetAt
from twinlog.cluster.raw import RawClient
from twinlog.cluster.recovered_writer import Lacking, Recovered, RecoveredWriter
from twinlog.errors import FencedError, RepairError
from twinlog.ledger.repairs import Place, Repairs
from twinlog.ledger.store import Ledger
from twinlog.model.offsets import Span, TopicPartition
from twinlog.model.reconciliation import Difference
from twinlog.model.repair import Remedy
from twinlog.model.topology import Flow, Topology
from twinlog.operations.checkpoint import Checkpointing
from twinlog.operations.failback_topics import make_stranded_topics
from twinlog.operations.fresh_copy import Executors
from twinlog.operations.reconcile import Reconciling, Scope
from twinlog.operations.recopy import Recopying
from twinlog.operations.recording import rebuild_ledger
from twinlog.operations.repair_look import RepairLooking
from twinlog.operations.repair_plan import RepairPlan, RepairRequest, RepairResult, TopicToRecover
from twinlog.operations.run_scope import Ends
from twinlog.operations.sync import Sync

LISTED_AT_MOST = 50


@dataclass(frozen=True)
class Repair:
    """A flow and everything that its repair needs."""

    topology: Topology
    flow: Flow
    ends: Ends
    ledger: Ledger
    ends_of: Callable[[Topology, Flow], Ends]
    """How another flow between the same clusters reaches them."""
    say: Callable[[str], None] = field(default=lambda _: None)
    """Told, in a sentence, of every step that begins."""

    def plan(self, request: RepairRequest) -> RepairPlan:
        """What a repair would do now, kept beside the ledger; changes nothing else."""
        plan = RepairLooking(self.topology, self.flow, self.ends, self.ledger).plan(request)
        if not plan.refused and not plan.under_way:
            Repairs(self.ledger).keep(plan.id, plan.to_json())
        return plan

    def kept_plan(self, plan_id: str) -> RepairPlan:
        """The plan that somebody has approved."""
        said = Repairs(self.ledger).read(plan_id)
        if said is None:
            raise RepairError(f"{self.flow.name}: there is no plan {plan_id} beside the ledger; make one first")
        return RepairPlan.from_json(said)

    def carry_out(self, plan: RepairPlan, execute: Executors) -> RepairResult:
        """Do what the plan says; what stops it is in the result, and the next call goes on there."""
        if plan.refused:
            return RepairResult(plan, failure="; ".join(plan.refused))
        if not plan.remedies:
            return RepairResult(plan)
        started = time.monotonic()
        said = Repairs(self.ledger).read(plan.id) or plan.to_json()
        said = {"begun_at_ms": _now_ms(), **said}
        self._keep(plan, said)
        doing = _Doing(self, plan, execute)
        done: list[Remedy] = []
        failure = None
        try:
            for remedy in plan.remedies:
                self.say(f"{self.flow.name}: {remedy}")
                getattr(doing, remedy.value)()
                done.append(remedy)
        except (RepairError, FencedError) as stopped:
            failure = str(stopped)
        left = [] if failure else doing.compared()
        result = RepairResult(
            plan,
            tuple(done),
            failure,
            doing.figures,
            tuple(dict.fromkeys(doing.warnings)),
            None if failure else ("different" if left else "equal"),
            tuple(_sentence(one) for one in left[:LISTED_AT_MOST]),
            time.monotonic() - started,
        )
        ended = {} if failure else {"ended_at_ms": doing.ended_at_ms}
        self._keep(plan, {**said, "result": result.to_json(), **ended})
        return result

    def abandon(self) -> str:
        """End a repair that was begun; fresh topics are removed, and what was done stays."""
        plan = RepairLooking(self.topology, self.flow, self.ends, self.ledger).under_way()
        if plan is None:
            raise RepairError(f"{self.flow.name}: no repair is under way")
        if plan.recopy:
            for sentence in _recopying(self, plan).clear():
                self.say(sentence)
        said = Repairs(self.ledger).read(plan.id) or plan.to_json()
        self._keep(plan, {**said, "abandoned": True, "ended_at_ms": _now_ms()})
        return f"{self.flow.name}: repair {plan.id} is abandoned; a twin that was being filled is filled on by a run"

    def _keep(self, plan: RepairPlan, said: Mapping[str, Any]) -> None:
        Repairs(self.ledger).keep(plan.id, said)


class _Doing:
    """The steps of one repair; each method is a step, by its name."""

    def __init__(self, repair: Repair, plan: RepairPlan, execute: Executors) -> None:
        self.figures: dict[str, Any] = {}
        self.warnings: list[str] = []
        self.ended_at_ms = 0
        self._repair = repair
        self._flow = repair.flow
        self._plan = plan
        self._execute = execute

    def settings(self) -> None:
        repair = self._repair
        result = Sync(repair.topology, self._flow, repair.ends.source, repair.ends.target).run()
        if result.skipped is not None or result.failed:
            raise RepairError("; ".join([*([result.skipped] if result.skipped else []), *result.failed]))
        self.figures["changed"] = len(result.changes)
        self.warnings += result.warnings

    def ledger(self) -> None:
        done = rebuild_ledger(self._repair.ledger, self._flow, self._repair.ends.target)
        self.figures["ledger_rows"] = done.rows

    def recover(self) -> None:
        repair, topics = self._repair, {one.topic: one.into for one in self._plan.recover}
        with repair.ends.target.raw() as target, repair.ends.source.raw(beside=target) as source:
            make_stranded_topics(source, target, topics)
            limits = target.run(max_batch_bytes(target, topics.values()))
            done: list[Recovered] = []
            for one in self._plan.recover:
                writer = RecoveredWriter(source, target, self._flow.name, limits[one.into])
                done += target.run(writer.append(self._lacking(source, one)))
        kept: dict[Place, list[Span]] = {}
        for each in done:
            place = Place(each.lacking.source_topic_id, each.lacking.source.partition)
            kept.setdefault(place, []).extend(Span(offset, offset + 1) for offset in each.offsets)
        Repairs(repair.ledger).note_recovered(self._plan.id, kept)
        self.figures["recovered"] = sum(len(each.offsets) for each in done)
        self.figures["recovered_now"] = sum(each.appended for each in done)

    def _lacking(self, source: RawClient, one: TopicToRecover) -> list[Lacking]:
        view = source.run(settled_metadata(source, [one.topic]))
        topic = view.topics[one.topic]
        if topic.topic_id is None or topic.error is not None:
            raise RepairError(f"cluster {source.alias}: {one.topic} can't be read: {topic.error}")
        places = [TopicPartition(one.topic, number) for number in one.lacking]
        starts = source.run(settled_offsets(source, view, places, OffsetAt.LOG_START)).offsets
        ends = source.run(settled_offsets(source, view, places, OffsetAt.LAST_STABLE)).offsets
        found = []
        for place in places:
            if place not in starts or place not in ends:
                raise RepairError(f"cluster {source.alias}: {place}: where its log begins and ends isn't known")
            spans = one.lacking[place.partition]
            kept = [Span(max(span.start, starts[place]), min(span.end, ends[place])) for span in spans]
            kept = [span for span in kept if span.start < span.end]
            gone = sum(span.end - span.start for span in spans) - sum(span.end - span.start for span in kept)
            if gone:
                self.warnings.append(
                    f"{place}: {gone:,} records are on {source.alias} no longer, and can't be recovered"
                )
            if kept:
                found.append(Lacking(place, topic.topic_id, kept, TopicPartition(one.into, place.partition)))
        return found

    def recopy(self) -> None:
        self.warnings += _recopying(self._repair, self._plan).run(self._execute)
        self.figures["recopied"] = [one.twin for one in self._plan.recopy]

    def checkpoints(self) -> None:
        repair = self._repair
        if not self._flow.emit_checkpoints_enabled:
            return
        done = Checkpointing(repair.topology, self._flow, repair.ends.source, repair.ends.target, repair.ledger).run()
        self.figures["checkpoints"] = done.records
        self.warnings += [*([done.skipped] if done.skipped else []), *done.failures]

    def compared(self) -> list[Difference]:
        """What still differs. What was disproven before is looked at again by every run, and what was copied again or
        is in the ledger only now is new, so nothing more needs to be asked for."""
        repair = self._repair
        self.ended_at_ms = _now_ms()
        found = Reconciling(repair.topology, self._flow, repair.ends, repair.ledger).run(
            Scope(), self._execute.prove, tasks=self._execute.tasks
        )
        self.figures["report"] = found.report
        return list(found.differences)


def _recopying(repair: Repair, plan: RepairPlan) -> Recopying:
    return Recopying(repair.topology, repair.flow, repair.ends, repair.ledger, repair.ends_of, plan, repair.say)


def _sentence(one: Difference) -> str:
    where = "" if one.topic is None else f" {one.topic}" + ("" if one.partition is None else f"-{one.partition}")
    return f"{one.kind}{where}, source offset {one.source_offset}, target offset {one.target_offset}: {one.detail}"


def _now_ms() -> int:
    return int(time.time() * 1000)
