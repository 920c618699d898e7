"""The steps of a failback as they are carried out. Each may be done again: it finds what an earlier try did.

What comes between two steps is met by a later one: only those stranded records are settled that were exported, and what
somebody wrote on the target after the seam had been cut goes home before the flow goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from twinlog.cluster.copy_order import Executor
from twinlog.cluster.fencing import fence_lanes
from twinlog.cluster.inventory import max_batch_bytes
from twinlog.cluster.raw import RawClient
from twinlog.cluster.stranded_writer import StrandedWriter
from twinlog.errors import FailbackError
from twinlog.ledger.failbacks import Failbacks
from twinlog.model.description import described
from twinlog.model.failback import Stranded, StrandedSpan, damaged, stranded
from twinlog.model.flow_state import FlowRecord, State
from twinlog.model.reconciliation import Difference, Kind, Verdict
from twinlog.operations.failback_groups import move_groups_home
from twinlog.operations.failback_plan import LISTED_AT_MOST, FailbackPlan
from twinlog.operations.failback_runs import FailbackRuns
from twinlog.operations.failback_stamps import hold_stamps, put_back
from twinlog.operations.failback_stranded import STRANDED_TOPIC, stranded_parts
from twinlog.operations.failback_topics import make_anew, make_stranded_topics
from twinlog.operations.flow_gate import record_of
from twinlog.operations.hooks import Event, run_hooks
from twinlog.operations.lease import flow_store, held
from twinlog.operations.reconcile import Reconciling
from twinlog.operations.write_blocking import deny, plan_block, unblock

if TYPE_CHECKING:
    from twinlog.operations.failback import Failback

_BESIDE = frozenset({Kind.SETTING, Kind.PARTITIONS, Kind.PERMISSION, Kind.GROUP})
"""What a reconciliation finds beside records."""


@dataclass(frozen=True)
class _Left:
    """What of the source never crossed, now."""

    spans: list[StrandedSpan]
    damaged: frozenset[str]
    """The source's topics that have to be rebuilt."""

    def topics(self) -> set[str]:
        return {span.pair.source_topic for span in self.spans}


class FailbackSteps:
    """The steps of one failback; each method without an underscore is a step, by its name."""

    def __init__(self, failback: Failback, plan: FailbackPlan, execute: Executor, tasks: int) -> None:
        self.runs = FailbackRuns(failback, plan, execute, tasks)
        self.figures, self.warnings = self.runs.figures, self.runs.warnings
        self._failback = failback
        self._flow = failback.flow
        self._plan = plan

    def begin(self) -> None:
        with self._failback.ends.target.raw() as target:
            record = target.run(record_of(self._flow, target))
            target.run(fence_lanes(target, self._flow.name, max(record.lanes, record.retiring_lanes)))

    def export(self) -> None:
        kept = Failbacks(self._failback.ledger)
        part = 0
        with self._both() as (source, target):
            for span in self._left(source, target).spans:
                for records in stranded_parts(source, span):
                    if records:
                        kept.export(self._plan.id, part, records)
                        part += 1
        self.figures["stranded_records"] = kept.exported_records(self._plan.id)
        if part:
            self.figures["stranded_kept"] = kept.place(self._plan.id)

    def settle(self) -> None:
        exported = Failbacks(self._failback.ledger).exported_ends(self._plan.id)
        with self._both() as (source, target):
            left = self._left(source, target)
        appended = self._appended(left)
        self.runs.onward_to_the_end(appended)
        # What has been written on the source since it was exported is new, and crosses like anything new.
        spans = [
            span.up_to(exported.get(span.pair.source, span.start))
            for span in left.spans
            if span.pair.source_topic not in appended
        ]
        spans = [span for span in spans if span.offsets or span.expired]
        if spans:
            with self._both() as (source, target):
                self._pass_over(source, target, spans)

    def delete(self) -> None:
        if not self.runs.anew:
            return
        self.runs.fit_ledger()
        approved = {name: UUID(topic_id) for name, topic_id in self._plan.delete.items()}
        wanted = {twin: self._plan.topics[twin] for twin in sorted(self.runs.anew)}
        with self._both() as (source, target):
            problems = make_anew(source, target, self._flow, approved, wanted)
        if problems:
            raise FailbackError("; ".join(problems))

    def home(self) -> None:
        with self._both() as (source, target):
            # What a switchover closed would keep what goes home out as well.
            opened = unblock(self._flow, source, target)
            hold_stamps(source, self._plan.stamps)
        if opened:
            self.figures["unblocked"] = opened
        if self._plan.topics:
            # What is written meanwhile is the seam's matter.
            self.runs.home()

    def seam(self) -> None:
        if self._plan.request.block_writes:
            self._block()
        if self._plan.topics:
            self.runs.cut()

    def over(self) -> None:
        """All that came home lies before the positions when this ends, so that none of it is mirrored again."""
        self.runs.onward_to_the_end(set(self._plan.topics.values()))

    def groups(self) -> None:
        access, home = self._failback.home_ends, self.runs.way_home
        moved = move_groups_home(self.runs.topology, home, access.source, access.target, self.runs.home_ledger)
        self.figures.update(
            {
                "groups": moved.groups,
                "groups_moved": list(moved.moved),
                "groups_left_out": list(moved.left_out),
                "read_again": moved.read_again,
            }
        )
        self.warnings += moved.warnings

    def prove(self) -> None:
        """Both logs in both directions, as reconciliation compares them; what differs is told, and holds nothing up.

        Settings and permissions are not judged: they are the flow's again as soon as it runs.
        """
        self._bring_late()
        failback, home = self._failback, self.runs.way_home
        differences: list[Difference] = []
        for flow, ends, ledger in (
            (self._flow, failback.ends, failback.ledger),
            (home, failback.home_ends, self.runs.home_ledger),
        ):
            found = Reconciling(self.runs.topology, flow, ends, ledger).run()
            differences += [one for one in found.differences if one.kind not in _BESIDE]
            self.figures[f"compared_{'home' if flow is home else 'onward'}"] = found.records
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

        self._bring_late()
        with self._both() as (source, target):
            put_back(source, self._plan.stamps)
            target.run(flow_store(self._flow, target).change(decide))
            self._failback.unblock(target)

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

    def _bring_late(self) -> None:
        """What somebody wrote on the target although the seam had been cut would be heard of no more."""
        if not self._plan.topics:
            return
        late = self.runs.home().recorded.records
        if late:
            self.warnings.append(
                f"{late:,} records were written on {self._flow.target} after the last of it had gone home; they are "
                f"home too. Stop whoever writes there: once {self._flow.name} is active, nobody brings it home"
            )
            self.seam()
            self.over()
            self.groups()

    def _appended(self, left: _Left) -> set[str]:
        """The topics whose stranded records the flow itself copies, as it would have done then."""
        schemas = {self._flow.schemas_topic}
        # A schema that never crossed would be missing for ever to what is mirrored from now on.
        chosen = left.topics() if self._plan.request.stranded is Stranded.APPEND else left.topics() & schemas
        return chosen - left.damaged

    def _left(self, source: RawClient, target: RawClient) -> _Left:
        """What is stranded now; what was settled by an earlier try no longer is."""
        surveying = self._failback.looking.surveying
        found, _ = surveying.partitions(source, target, surveying.mirrored(target))
        return _Left(list(stranded(found)), frozenset(one.topic for one in damaged(found)))

    def _pass_over(self, source: RawClient, target: RawClient, spans: list[StrandedSpan]) -> None:
        to_topics = self._plan.request.stranded is Stranded.TOPIC
        topics: Mapping[str, str] = {}
        if to_topics:
            topics = {span.pair.source_topic: span.pair.source_topic + STRANDED_TOPIC for span in spans}
            make_stranded_topics(source, target, topics)
        forgotten = self._failback.looking.surveying.mirrored(target).forgotten
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
        name = "stranded_sent" if to_topics else "stranded_left"
        self.figures[name] = self.figures.get(name, 0) + passed

    def _block(self) -> None:
        """Nobody but us writes to the twins until the flow is active again."""
        topics = sorted(self._plan.topics)
        planned = plan_block(self.runs.topology, self.runs.way_home, self._failback.home_ends.source, topics)
        self.warnings += planned.open
        if planned.denials:
            with self._failback.ends.target.raw() as target:
                self._failback.note_blocked(target, planned.denials)
                deny(target, planned.denials)
        self.figures["blocked"] = len(planned.denials)

    @contextmanager
    def _both(self) -> Iterator[tuple[RawClient, RawClient]]:
        """The flow's source and its target."""
        with self._failback.ends.target.raw() as target, self._failback.ends.source.raw(beside=target) as source:
            yield source, target
