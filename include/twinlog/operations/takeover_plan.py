"""Makes the plan of a takeover. Nothing is changed on either cluster.

    source   its groups and what is not copied of it       for as long as it answers in time, each by itself
    target   checkpoints, the groups' own offsets, positions, what was kept back of settings and permissions
    ledger   where each offset became which, and the readiness table of the last pass

Everything is there without the source. Where a transaction is open on the target, as after a copier's death, the plan
waits for it no longer than `SETTLED_WITHIN_S` and says that it is provisional: once the writers are fenced, offsets are
looked up again.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.committed import fetch_positions
from twinlog.cluster.log_offsets import OffsetAt, list_offsets
from twinlog.cluster.raw import RawClient
from twinlog.cluster.record_times import times_at
from twinlog.errors import FlowStateError, MirrorMakerFormatError, NotAuthorizedError
from twinlog.intake.extensions import naming_of, topics_of
from twinlog.ledger.store import Ledger
from twinlog.ledger.takeovers import Takeovers
from twinlog.model.lanes import journal_topic, position_group
from twinlog.model.offsets import TopicPartition
from twinlog.model.positions import Position
from twinlog.model.selection import TopicSelection
from twinlog.model.takeover import Kind, Request, TakeoverPlan
from twinlog.model.topology import Flow, Topology
from twinlog.operations.checkpoint import checkpoint_store
from twinlog.operations.group_translation import GroupTranslation, group_translation, recorded_group_translation
from twinlog.operations.heartbeat import heartbeat_age
from twinlog.operations.last_seen import last_seen
from twinlog.operations.promotion import Promotion, plan_promotion
from twinlog.operations.readiness import ReadinessTables, unread_of
from twinlog.operations.recording import bring_up_to_date
from twinlog.operations.schema_registry import look_at_registry
from twinlog.operations.source_groups import SourceGroups
from twinlog.operations.source_look import ANSWERS_WITHIN_S, SourceLook, SourceSaid
from twinlog.operations.standings import Standing, read_target_groups, standings
from twinlog.operations.takeover_losses import Losses, clock, missing, said_losses, seen_losses, unknown_losses
from twinlog.operations.takeover_starts import Starting

SETTLED_WITHIN_S = 5.0
PAUSE_S = 0.1


class TakeoverPlanning:
    """A flow, and how to reach its clusters and its ledger."""

    def __init__(
        self,
        topology: Topology,
        flow: Flow,
        source: ClusterAccess,
        target: ClusterAccess,
        ledger: Ledger,
        *,
        source_within_s: float = ANSWERS_WITHIN_S,
    ) -> None:
        named = {other.name: naming_of(other) for other in topology.flows.values() if other.naming_policy}
        self._selection = TopicSelection(topology, flow, named, topics_of(flow))
        self._topology = topology
        self._flow = flow
        self._source = source
        self._target = target
        self._ledger = ledger
        self._source_within_s = source_within_s

    def plan(self, request: Request, kind: Kind = Kind.FAILOVER, *, keep: bool = True) -> TakeoverPlan:
        """Make a plan and, unless told not to, keep it beside the ledger."""
        look = SourceLook(self._topology, self._flow, self._source, self._target, self._source_within_s)
        with self._target.raw() as target:
            self._demand_run(target)
            plan = self._plan(target, look.said, request, kind)
        if keep:
            Takeovers(self._ledger).write(plan)
        return plan

    def plan_alone(self, request: Request) -> TakeoverPlan:
        """The plan that would be made if the source were silent, which is not asked; it is not kept."""
        silent = SourceSaid()
        with self._target.raw() as target:
            self._demand_run(target)
            return self._plan(target, lambda: silent, request, Kind.FAILOVER)

    def renewed(self, plan: TakeoverPlan) -> TakeoverPlan:
        """The same plan by what is known now, kept in its place. A source that was silent is not asked again."""
        silent = SourceSaid(silence=(f"cluster {self._flow.source} did not answer when the plan was made",))
        look = None
        if plan.source_answered:
            look = SourceLook(
                self._topology, self._flow, self._source, self._target, self._source_within_s, compare=False
            )
        with self._target.raw() as target:
            found = self._plan(target, (lambda: silent) if look is None else look.said, plan.request, plan.kind)
        renewed = replace(found, id=plan.id, differences=plan.differences)
        Takeovers(self._ledger).write(renewed)
        return renewed

    def _demand_run(self, target: RawClient) -> None:
        topic = journal_topic(self._flow.source, self._flow.target)
        if target.run(target.metadata([topic])).topics[topic].is_missing:
            raise FlowStateError(
                f"{self._flow.name} has never run, so there is nothing on {self._flow.target} that could take over"
            )

    def _plan(
        self, target: RawClient, source_said: Callable[[], SourceSaid], request: Request, kind: Kind
    ) -> TakeoverPlan:
        flow = self._flow
        strange: list[str] = []
        written = target.run(checkpoint_store(flow, target).read(strange))
        known = last_seen(flow, written, ReadinessTables(self._ledger).last(strange))
        unsettled = self._unsettled(target)
        ledger_rows = self._rows_before(target, settled=unsettled is None)
        said = source_said()
        positions = target.run(fetch_positions(target, position_group(flow.name), stable=False))
        groups = said.groups or known.groups
        # After the groups' own offsets, never before them: what they have read since must be in the ledger too.
        translation = self._translation(kind, settled=unsettled is None)
        there = target.run(read_target_groups(target, groups, written))
        found = standings(self._selection, groups, translation, there)
        left_over = [] if said.groups is not None else self._not_in(known.left_out, groups)
        chosen = [row for row in (*found.rows, *left_over) if request.takes(row.group)]
        starts = Starting(request, there).starts(target, chosen)
        promotion = target.run(plan_promotion(target, flow, {twin.topic for twin in positions}))
        lost = said_losses(flow, said.lags) if said.lags is not None else self._seen(target, positions, known.ends)
        sides = self._topology.clusters[flow.source], self._topology.clusters[flow.target]
        registry = look_at_registry(target, flow, sides, sorted({twin.topic for twin in positions}))
        return TakeoverPlan(
            id=_new_id(),
            kind=kind,
            flow=flow.name,
            source=flow.source,
            target=flow.target,
            made_at_ms=int(time.time() * 1000),
            request=request,
            rows=tuple(starts.planned(unread_of(starts.rows, translation.onward))),
            left_out=tuple(starts.left_out()),
            losses=lost.topics,
            lost_records=lost.records,
            lost_seconds=lost.seconds,
            lost_note=lost.note,
            bootstrap_servers=self._target.bootstrap_servers,
            topics=self._names(positions),
            promoted=promotion.topics,
            settings=promotion.settings,
            acls=promotion.acls,
            differences=said.differences or (),
            source_answered=said.groups is not None,
            ledger_rows=ledger_rows,
            provisional=unsettled,
            notes=(
                *self._silence(said),
                *found.notes,
                *strange,
                *promotion.notes,
                *(() if said.differences is not None else self._last_compared(promotion)),
                *(registry.sentences if registry is not None else ()),
            ),
            registry={} if registry is None else registry.to_json(),
        )

    def _rows_before(self, target: RawClient, *, settled: bool) -> int:
        """How many rows the ledger has before anything is looked at. A copier that lives on may commit while the plan
        is made: whatever the ledger has more than this once it is fenced, the plan may have seen in part."""
        if settled:
            bring_up_to_date(self._ledger, self._flow, self._target, target, set())
        return self._ledger.mark().node.total

    def _translation(self, kind: Kind, *, settled: bool) -> GroupTranslation:
        if kind is Kind.SWITCHOVER:
            return group_translation(self._topology, self._flow, self._source, self._target, self._ledger)
        return recorded_group_translation(self._topology, self._flow, self._target, self._ledger, settled=settled)

    def _unsettled(self, target: RawClient) -> str | None:
        """That a transaction is open on the flow's journal for longer than one that is just being committed."""
        topic = journal_topic(self._flow.source, self._flow.target)
        view = target.run(target.metadata([topic]))
        partitions = [TopicPartition(topic, number) for number in range(len(view.topics[topic].partitions))]
        deadline = time.monotonic() + SETTLED_WITHIN_S
        ends = target.run(list_offsets(target, view, partitions, OffsetAt.LOG_END)).offsets
        while True:
            stable = target.run(list_offsets(target, view, partitions, OffsetAt.LAST_STABLE)).offsets
            if all(stable.get(partition, 0) >= end for partition, end in ends.items()):
                return None
            if time.monotonic() > deadline:
                return (
                    f"a transaction of {self._flow.name} is open on {self._flow.target}, so this is what was known "
                    "before it; the offsets are looked up again once the writers are fenced"
                )
            target.run(target.pause(PAUSE_S))

    def _seen(
        self, target: RawClient, positions: Mapping[TopicPartition, Position], ends: Mapping[TopicPartition, int]
    ) -> Losses:
        """What is lost by the last that was seen of a source that does not answer."""
        if not positions:
            return unknown_losses(self._flow)
        missed = missing(self._flow, positions, ends)
        view = target.run(target.metadata({one.twin.topic for one in missed.values()}))
        asked = {one.twin: one.last_copied for one in missed.values() if one.last_copied >= 0}
        copied_ms = target.run(times_at(target, view, asked))
        return seen_losses(self._flow, missed, copied_ms, self._heartbeat_age(target))

    def _heartbeat_age(self, target: RawClient) -> float | None:
        try:
            return heartbeat_age(self._flow, self._target, target)
        except (NotAuthorizedError, MirrorMakerFormatError):
            # How long ago the source lived is worth knowing, and nothing that a takeover waits for.
            return None

    def _names(self, positions: Mapping[TopicPartition, Position]) -> dict[str, str]:
        policy = naming_of(self._flow)
        named = {policy.source_name(twin.topic): twin.topic for twin in positions}
        return {topic: twin for topic, twin in sorted(named.items(), key=str) if topic is not None}

    def _last_compared(self, promotion: Promotion) -> Iterator[str]:
        """That settings and permissions are those of the last time that they were compared."""
        for what, at_ms in (
            ("settings", promotion.settings_compared_ms),
            ("permissions", promotion.acls_compared_ms),
        ):
            when = "never were" if not at_ms else f"were last at {clock(at_ms / 1000)}"
            yield f"{what} of {self._flow.source} can't be compared with those of {self._flow.target}, and {when}"

    def _not_in(self, rows: tuple[Standing, ...], groups: SourceGroups) -> list[Standing]:
        return [row for row in rows if row.source not in groups.commits.get(row.group, {})]

    def _silence(self, said: SourceSaid) -> list[str]:
        if said.groups is not None:
            return list(said.silence)
        what = f"the checkpoints on {self._flow.target} and the last readiness table say what groups had read"
        return [f"{sentence}; {what}" for sentence in said.silence]


def _new_id() -> str:
    """Sorts by time, and no two are equal."""
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{uuid.uuid4().hex[:8]}"
