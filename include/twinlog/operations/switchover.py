"""Switchover: the target takes the source's place while the source is alive. Nothing is lost and nothing read again.

    1  optionally, everybody but us is denied to write to the source's topics
    2  copied until nothing is left, drained, and looked at again: positions are the source's ends, and nobody writes
    3  proven: a reconciliation finds both logs equal
    4  the groups' positions, translated now; then everything as in a failover (see `failover`)
    5  the flow the other way is started, where the topology has one

What goes wrong before 4 is undone: writes are allowed again, and the flow goes on as before. From 4 on the target
remembers the takeover, and whoever runs it again goes on with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from twinlog.cluster.copy_order import Executor
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import named
from twinlog.errors import ClusterUnreachableError, FlowStateError, TwinlogError
from twinlog.intake.extensions import naming_of
from twinlog.ledger.store import Ledger
from twinlog.model.flow_state import FlowRecord, State
from twinlog.model.lanes import state_topic
from twinlog.model.offsets import TopicPartition
from twinlog.model.takeover import Kind, Request, TakeoverPlan
from twinlog.model.topology import Flow, Topology
from twinlog.operations.control import Action, control
from twinlog.operations.directions import comes_back
from twinlog.operations.failover import Failover
from twinlog.operations.flow_gate import SOURCE_LEADS, record_of
from twinlog.operations.lag import measure_partitions
from twinlog.operations.lease import flow_store
from twinlog.operations.mirror import Mirror
from twinlog.operations.run_scope import Ends
from twinlog.operations.source_groups import listed
from twinlog.operations.source_look import mirrored_data
from twinlog.operations.takeover_result import TakeoverResult
from twinlog.operations.write_blocking import block, plan_block, unblock

EQUAL_WITHIN_S = 600.0
PAUSE_S = 0.5
SOURCE_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether both logs are equal, in a sentence."""

    equal: bool
    sentence: str
    notes: tuple[str, ...] = ()
    """What differs beside the records, and stands in nobody's way."""


Prove = Callable[[], Proof]


@dataclass(frozen=True)
class Opposite:
    """The flow the other way, and what a run of it needs."""

    flow: Flow
    ends: Ends
    ledger: Ledger


@dataclass(frozen=True)
class SwitchoverResult:
    """What was done before the takeover, the takeover, and the way back."""

    takeover: TakeoverResult
    runs: int = 0
    """Runs of the flow until nothing was left."""
    blocked: int = 0
    """Denials on the source."""
    proof: str | None = None
    reverse: str | None = None
    """What became of the flow the other way, in a sentence; None where there is none."""
    notes: tuple[str, ...] = ()
    late: str | None = None
    """That records came to the source after everything was proven equal, in a sentence; None where none did."""

    @property
    def exit_code(self) -> int:
        return 1 if self.late is not None else self.takeover.exit_code

    def to_json(self) -> dict[str, Any]:
        return {
            **self.takeover.to_json(),
            "runs": self.runs,
            "blocked": self.blocked,
            "proof": self.proof,
            "reverse": self.reverse,
            "late": self.late,
            "notes": [*self.takeover.plan.notes, *self.notes],
        }


class Switchover:
    """A flow, and all that a switchover of it needs."""

    def __init__(
        self,
        topology: Topology,
        flow: Flow,
        ends: Ends,
        ledger: Ledger,
        *,
        opposite: Opposite | None = None,
        within_s: float = EQUAL_WITHIN_S,
    ) -> None:
        """`opposite` is the flow the other way if that is enabled, `within_s` the time in which the logs must become
        equal."""
        self._opposite = opposite
        self._topology = topology
        self._flow = flow
        self._ends = ends
        self._ledger = ledger
        self._within_s = within_s
        self.failover = Failover(topology, flow, ends.source, ends.target, ledger, source_within_s=SOURCE_WITHIN_S)

    def plan(self, request: Request) -> TakeoverPlan:
        """What would be done now; what is not copied yet will be."""
        plan = self.failover.plan(request, Kind.SWITCHOVER)
        if not plan.source_answered:
            raise ClusterUnreachableError(
                f"{'; '.join(plan.notes)}. A switchover needs the source; where it is given up, `twinlog failover` "
                "does without"
            )
        return plan

    def apply(
        self, plan: TakeoverPlan, execute: Executor, prove: Prove, *, tasks: int = 1, block_writes: bool = False
    ) -> SwitchoverResult:
        """Carry it out, or go on where it was cut short; `execute` copies, and `prove` compares both logs."""
        with self._ends.target.raw() as target:
            record = target.run(record_of(self._flow, target))
        if self._is_going_on(record, plan):
            return self._ended(SwitchoverResult(self.failover.apply(plan)))
        with self._undone_on_failure(record.state):
            blocked = self._block(plan) if block_writes else ((), ())
            runs = self._copy_until_equal(execute, tasks)
            proof = prove()
            if not proof.equal:
                raise FlowStateError(f"{self._flow.name} is not switched over: {proof.sentence}")
            final = self.failover.renewed(plan)
            if final.lost_records != 0:
                raise FlowStateError(
                    f"{self._flow.name} is not switched over: {final.lost_records} records came to {self._flow.source} "
                    f"after the last look ({final.lost_note}); is somebody writing there yet? --block-writes denies it"
                )
            notes = (*blocked[1], *proof.notes, *self._still_reading(final))
            taken = self.failover.apply(final)
        late = self._came_late()
        return self._ended(SwitchoverResult(taken, runs, len(blocked[0]), proof.sentence, notes=notes, late=late))

    def undo(self) -> str:
        """Take back what a switchover that did not come to its end left: the denials and the pause."""
        with self._ends.target.raw() as target, self._ends.source.raw(beside=target) as source:
            record = target.run(record_of(self._flow, target))
            if record.state is State.FAILED_OVER:
                raise FlowStateError(
                    f"{self._flow.name} is failed over, which is not undone but gone back from: `twinlog failback`"
                )
            if record.state is State.FAILING_BACK:
                raise FlowStateError(f"{self._flow.name} is failing back; let `twinlog failback` come to its end")
            count = unblock(self._flow, source, target)
        if record.state is State.PAUSED:
            control(self._flow, self._ends.target, Action.RESUME)
        return f"{self._flow.name} is active, and {count} denials were taken back on {self._flow.source}"

    def _is_going_on(self, record: FlowRecord, plan: TakeoverPlan) -> bool:
        if record.state in SOURCE_LEADS:
            return False
        known = record.takeover
        if record.state is State.FAILED_OVER and known is not None and known.plan == plan.id:
            return True
        raise FlowStateError(f"{self._flow.name} is {record.state}, so it can't be switched over")

    @contextmanager
    def _undone_on_failure(self, before: State) -> Iterator[None]:
        """Whatever ends it, somebody's signal too: producers must not stay denied and the flow paused by a switchover
        that nobody carries out any more. Once the flow is failed over there is only the way on."""
        try:
            yield
        except BaseException as failure:
            try:
                with self._ends.target.raw() as target:
                    now = target.run(record_of(self._flow, target)).state
                    if now not in SOURCE_LEADS:
                        raise
                    with self._ends.source.raw(beside=target) as source:
                        unblock(self._flow, source, target)
                if before is State.ACTIVE and now is State.PAUSED:
                    control(self._flow, self._ends.target, Action.RESUME)
            except TwinlogError as second:
                if second is failure:
                    raise
                raise FlowStateError(
                    f"{failure}; and what the switchover of {self._flow.name} had done could not be undone: {second}; "
                    "`twinlog switchover --undo` does it"
                ) from failure
            raise

    def _block(self, plan: TakeoverPlan) -> tuple[tuple[object, ...], tuple[str, ...]]:
        wanted = plan_block(self._topology, self._flow, self._ends.source, self._data_topics(plan))
        with self._ends.target.raw() as target, self._ends.source.raw(beside=target) as source:
            block(self._flow, source, target, wanted.denials)
        return wanted.denials, wanted.open

    def _data_topics(self, plan: TakeoverPlan) -> list[str]:
        return [topic for topic in plan.topics if mirrored_data(self._topology, self._flow, topic)]

    def _copy_until_equal(self, execute: Executor, tasks: int) -> int:
        """Copy until nothing is left while nobody of ours writes any more; the flow is paused then."""
        deadline = time.monotonic() + self._within_s
        runs = 0
        mirror = Mirror(self._topology, self._flow, self._ends, self._ledger)
        while True:
            self._set_running()
            result = mirror.run(execute, tasks=tasks)
            runs += result.skipped is None
            if result.skipped is None and result.failures:
                raise FlowStateError(f"{self._flow.name} is not switched over: {'; '.join(result.failures)}")
            # After our own run, or what that brought would look as if it had been written there.
            self._bring_home(execute, tasks)
            if not self._left():
                control(self._flow, self._ends.target, Action.DRAIN)
                if not self._left():
                    return runs
            if time.monotonic() > deadline:
                left = self._left()
                where = named([str(partition) for partition in sorted(left)])
                raise FlowStateError(
                    f"{self._flow.name} is not switched over: after {self._within_s:.0f} s, {sum(left.values()):,} "
                    f"offsets of {where} were not copied; is somebody writing yet, or is a "
                    f"transaction open on {self._flow.source}? --block-writes denies writing"
                )
            time.sleep(PAUSE_S)

    def _bring_home(self, execute: Executor, tasks: int) -> None:
        """What the flow the other way has not brought yet: of a name that is mirrored both ways, groups would have to
        read it again."""
        if self._opposite is None:
            return
        opposite = self._opposite
        result = Mirror(self._topology, opposite.flow, opposite.ends, opposite.ledger).run(execute, tasks=tasks)
        if result.skipped is None and result.failures:
            raise FlowStateError(
                f"{self._flow.name} is not switched over: {opposite.flow.name}: {'; '.join(result.failures)}"
            )

    def _set_running(self) -> None:
        """Runs of ours are runs like any other, which a paused flow has none of."""
        with self._ends.target.raw() as target:
            if target.run(record_of(self._flow, target)).state is State.PAUSED:
                control(self._flow, self._ends.target, Action.RESUME)

    def _left(self) -> dict[TopicPartition, int]:
        """What of the source's data is not copied."""
        flow, policy = self._flow, naming_of(self._flow)
        with self._ends.target.raw() as target, self._ends.source.raw(beside=target) as source:
            topics = [
                topic
                for topic in source.run(source.metadata()).topics.values()
                if mirrored_data(self._topology, flow, topic.name)
            ]
            partitions = [
                TopicPartition(topic.name, number) for topic in topics for number in range(len(topic.partitions))
            ]
            lags = source.run(measure_partitions(source, target, flow, policy, partitions))
        unknown = sorted(str(partition) for partition, lag in lags.items() if lag.records is None)
        if unknown:
            raise ClusterUnreachableError(f"cluster {flow.source} can't say what is left of {', '.join(unknown)}")
        return {partition: lag.records for partition, lag in lags.items() if lag.records}

    def _came_late(self) -> str | None:
        """What was written to the source after the last look, in a sentence: it is stranded there.

        Not asked of names that are mirrored both ways, to which the flow the other way brings records by then.
        """
        goes_both_ways = comes_back(self._topology, self._flow)
        try:
            left = {place: count for place, count in self._left().items() if not goes_both_ways(place.topic)}
        except TwinlogError as failure:
            return f"whether anything was written to {self._flow.source} after the last look is not known: {failure}"
        if not left:
            return None
        return (
            f"{sum(left.values()):,} records were written to {self._flow.source} after the last look, to "
            f"{named([str(place) for place in sorted(left)])}: they are stranded there, and `twinlog failback` lists "
            "them; somebody is still writing"
        )

    def _still_reading(self, plan: TakeoverPlan) -> list[str]:
        """Groups with members on the source: what they read after this, they read again."""
        names = self.failover.active_on_source(sorted({row.group for row in plan.rows}))
        if not names:
            return []
        return [
            f"{listed(names)} with members on {self._flow.source}: what they read there from now on they read again on "
            f"{self._flow.target}; stop them first"
        ]

    def _ended(self, result: SwitchoverResult) -> SwitchoverResult:
        if self._opposite is None:
            return result
        other = self._opposite.flow
        try:
            return replace(result, reverse=self._start(other))
        except TwinlogError as failure:
            said = f"{other.name} was not started: {failure}"
            return replace(result, reverse=said, notes=(*result.notes, said))

    def _start(self, other: Flow) -> str:
        """Let the flow the other way run, whose target is our source; what was denied there for it is allowed again."""
        seen = [State.ACTIVE]

        def decide(found: FlowRecord) -> FlowRecord | None:
            seen.append(found.state)
            if found.state is State.ACTIVE:
                return None
            if found.state is State.FAILED_OVER:
                # Both sides were just proven equal: there is nothing that its way home would have to sort out.
                found = found.moved_to(State.FAILING_BACK, other.name)
            return replace(found.moved_to(State.ACTIVE, other.name), lease=None)

        with self._ends.source.raw() as home, self._ends.target.raw(beside=home) as there:
            if home.run(_has_state(other, home)):
                home.run(flow_store(other, home).change(decide))
                unblock(other, there, home)
        before = seen[-1]
        return f"{other.name} is active" if before is State.ACTIVE else f"{other.name} was {before} and is active"


async def _has_state(flow: Flow, target: RawClient) -> bool:
    topic = state_topic(flow.source, flow.target)
    return not (await target.metadata([topic])).topics[topic].is_missing
