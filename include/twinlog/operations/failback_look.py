"""Looks at both clusters of a flow that has failed over, and makes the plan of its failback; changes nothing.

What was mirrored goes home (see `failback_survey`); what else has been made on the target stays there, and is named.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from twinlog.cluster.inventory import settled_offsets
from twinlog.cluster.log_offsets import OffsetAt
from twinlog.cluster.metadata import ClusterMetadata
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import named
from twinlog.errors import ClusterError, LedgerError
from twinlog.intake.extensions import topics_of
from twinlog.ledger.failbacks import Failbacks, StrandedRecord
from twinlog.ledger.store import Ledger
from twinlog.model.failback import STEPS, DamagedPartition, Mode, damaged, stranded
from twinlog.model.findings import Finding, FindingKind
from twinlog.model.flow_state import FlowRecord, State
from twinlog.model.offsets import TopicPartition
from twinlog.model.topology import Flow, Topology
from twinlog.operations.directions import with_way_home
from twinlog.operations.failback_plan import (
    LISTED_AT_MOST,
    FailbackPlan,
    FailbackRequest,
)
from twinlog.operations.failback_stamps import held_back, stamped_on_arrival
from twinlog.operations.failback_stranded import last_values, row_of, stranded_rows
from twinlog.operations.failback_survey import FailbackSurvey, Mirrored
from twinlog.operations.failback_topics import too_few_brokers
from twinlog.operations.flow_gate import record_of
from twinlog.operations.returned_cluster import not_whole
from twinlog.operations.run_scope import Ends
from twinlog.operations.schema_registry import registry_conflicts, registry_home
from twinlog.operations.write_blocking import plan_block


@dataclass(frozen=True)
class FailbackLooking:
    """A flow and everything that looking at it needs."""

    topology: Topology
    flow: Flow
    ends: Ends
    ledger: Ledger

    def plan(self, request: FailbackRequest) -> FailbackPlan:
        with self.ends.target.raw() as target, self.ends.source.raw(beside=target) as source:
            record = target.run(record_of(self.flow, target))
            _, home = with_way_home(self.topology, self.flow)
            made_at_ms = int(time.time() * 1000)
            plan = FailbackPlan(
                f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(made_at_ms / 1000))}-{uuid.uuid4().hex[:8]}",
                self.flow.name,
                home.name,
                self.flow.source,
                self.flow.target,
                made_at_ms,
                request,
                str(record.state),
            )
            refused = self.not_failed_over(record)
            if refused is not None:
                return replace(plan, refused=(refused,))
            return self.under_way(record) or self._looked(plan, source, target)

    def under_way(self, record: FlowRecord) -> FailbackPlan | None:
        """The plan of the failback that was begun and has not ended; it is what goes on, whatever is asked for now."""
        if record.state is not State.FAILING_BACK or record.failback is None:
            return None
        kept = Failbacks(self.ledger).read(record.failback.id)
        if kept is None:
            raise LedgerError(
                f"{self.flow.name}: the plan {record.failback.id} of the failback that is under way is not beside the "
                "ledger; bring it back, or end that failback with --abandon"
            )
        plan = FailbackPlan.from_json(kept)
        done = ", ".join(STEPS[: record.failback.done]) or "nothing yet"
        return replace(plan, state=str(record.state), notes=(*plan.notes, f"under way since then; done: {done}"))

    def not_failed_over(self, record: FlowRecord) -> str | None:
        """Why there is nothing to fail back, in a sentence."""
        if record.state in (State.FAILED_OVER, State.FAILING_BACK):
            return None
        return f"{self.flow.name} is {record.state}: only a flow that has failed over can fail back"

    @property
    def surveying(self) -> FailbackSurvey:
        return FailbackSurvey(self.topology, self.flow, self.ends, self.ledger)

    def not_ready(self, plan: FailbackPlan) -> list[str]:
        """What has come between a plan and its beginning, a sentence each."""
        with self.ends.target.raw() as target, self.ends.source.raw(beside=target) as source:
            surveying, view = self.surveying, source.run(source.metadata())
            mirrored = surveying.mirrored(target)
            found, findings = surveying.partitions(source, target, mirrored)
            broken = [*damaged(found), *surveying.missing(mirrored, view)]
            health = [*not_whole(self.flow.source, view), *_undecided(findings)]
            schemas = self._schema_conflicts(plan.request, source, target)
        approved, policy = set(plan.anew), surveying.policy
        left = [one.message for one in broken if policy.target_name(one.topic) not in approved]
        return [*([] if plan.request.accept_degraded else health), *left, *schemas]

    def _schema_conflicts(self, request: FailbackRequest, source: RawClient, target: RawClient) -> list[str]:
        schemas = self.flow.schemas_topic
        return [] if schemas is None or request.mode is Mode.REBUILD else registry_conflicts(source, target, schemas)

    def _looked(self, plan: FailbackPlan, source: RawClient, target: RawClient) -> FailbackPlan:
        surveying, request = self.surveying, plan.request
        policy, view = surveying.policy, source.run(source.metadata())
        mirrored = surveying.mirrored(target)
        topics = {**surveying.names(mirrored), **{name: policy.source_name(name) or name for name in request.also}}
        found, findings = surveying.partitions(source, target, mirrored)
        broken = [*damaged(found), *surveying.missing(mirrored, view)]
        anew = self._anew(request, topics, broken)
        stays = self._not_going(request.also, topics, view, target)
        topics = {twin: name for twin, name in topics.items() if twin not in stays}
        anew = anew.difference(stays)
        short = too_few_brokers(
            view, target.run(target.metadata()), self.flow.source, {twin: topics[twin] for twin in anew}
        )
        health = (*not_whole(self.flow.source, view), *_undecided(findings), *short)
        listed: list[StrandedRecord] = []
        rows = tuple(stranded_rows(source, target, mirrored, list(stranded(found)), listed))
        refused = [] if request.accept_degraded else [f"{problem}; wait for it, or accept it" for problem in health]
        refused += [one.message for one in findings if one.kind is FindingKind.NOT_ALLOWED]
        left = [one.message for one in broken if policy.target_name(one.topic) not in anew]
        if left:
            refused += [*left, "rebuild the damaged topics too, or all of them: see the options of `twinlog failback`"]
        refused += [*stays.values(), *self._schema_conflicts(request, source, target)]
        refused += self._unblockable(sorted(topics)) if request.block_writes else []
        delete = {topics[twin]: str(view.topics[topics[twin]].topic_id) for twin in anew if topics[twin] in view.topics}
        return replace(
            plan,
            refused=tuple(refused),
            health=health,
            damaged=tuple(one.message for one in broken),
            stranded=rows,
            records=tuple(row_of(record) for record in listed[:LISTED_AT_MOST]),
            topics=topics,
            delete=delete,
            anew=tuple(sorted(anew)),
            stamps=stamped_on_arrival(source, target.run(held_back(target, self.flow)), topics, anew),
            waiting=self._waiting(target, topics, mirrored, anew),
            notes=(
                *self._notes(target, topics),
                *self._not_crossing(source, view, mirrored),
                *last_values(source, self.flow, {row.topic for row in rows if row.records}, request.stranded),
            ),
        )

    def _unblockable(self, twins: Sequence[str]) -> list[str]:
        """Why producers on the target can't be kept from writing, though that was asked for."""
        topology, home = with_way_home(self.topology, self.flow)
        try:
            plan_block(topology, home, self.ends.target, twins)
        except ClusterError as refused:
            return [str(refused)]
        return []

    def _anew(
        self, request: FailbackRequest, topics: Mapping[str, str], broken: Sequence[DamagedPartition]
    ) -> frozenset[str]:
        """The twins of the topics that are to be rebuilt."""
        if request.mode is Mode.REBUILD:
            return frozenset(topics)
        wrong = {one.topic for one in broken} if request.rebuild_damaged else set()
        return frozenset(twin for twin, name in topics.items() if name in wrong or twin in request.also)

    def _not_going(
        self, also: Sequence[str], topics: Mapping[str, str], view: ClusterMetadata, target: RawClient
    ) -> dict[str, str]:
        """Of the topics that are to go home too, those that can't, each with the reason."""
        takes, there = topics_of(with_way_home(self.topology, self.flow)[1]), target.run(target.metadata()).topics
        found = {}
        for name in also:
            if name not in there:
                found[name] = f"{name} is to go home too, and is not on {self.flow.target}"
            elif not takes.accepts(name):
                found[name] = f"{name} is to go home too, and {self.flow.name} does not take a topic of that name"
            elif topics[name] in view.topics:
                found[name] = f"{name} is to go home too, and {self.flow.source} has a topic {topics[name]} of its own"
        return found

    def _waiting(self, target: RawClient, topics: Mapping[str, str], mirrored: Mirrored, anew: frozenset[str]) -> int:
        """Offsets on the target behind what came from the source, or, of what is rebuilt, all that it has."""
        if not topics:
            return 0
        view = target.run(target.metadata(list(topics)))
        twins = [TopicPartition(name, number) for name in topics for number in range(len(view.topics[name].partitions))]
        ends = target.run(settled_offsets(target, view, twins, OffsetAt.LAST_STABLE)).offsets
        starts = target.run(settled_offsets(target, view, twins, OffsetAt.LOG_START)).offsets

        def begin(twin: TopicPartition) -> int:
            start = starts.get(twin, 0)
            came = twin.topic not in anew and twin in mirrored.positions
            return max(start, mirrored.positions[twin].target_end) if came else start

        return sum(max(0, ends.get(twin, 0) - begin(twin)) for twin in twins)

    def _notes(self, target: RawClient, topics: Mapping[str, str]) -> Iterator[str]:
        _, home = with_way_home(self.topology, self.flow)
        takes = topics_of(home)
        view = target.run(target.metadata())
        stays = sorted(
            name
            for name, topic in view.topics.items()
            if name not in topics and not topic.internal and not name.startswith("__") and takes.accepts(name)
        )
        stays = [name for name in stays if not name.endswith(".internal")]
        if stays:
            yield (
                f"{len(stays):,} topics of {self.flow.target} did not come from {self.flow.source} and stay: "
                f"{', '.join(stays[:5])}{', ...' if len(stays) > 5 else ''}; --also takes them home"
            )

    def _not_crossing(self, source: RawClient, view: ClusterMetadata, mirrored: Mirrored) -> Iterator[str]:
        """What is only on one side, and no matter of a failback."""
        here, there = self.flow.source, self.flow.target
        never = self.surveying.never_mirrored(source, view, mirrored)
        if never:
            rows = [f"{name} ({offsets:,} offsets)" for name, offsets in sorted(never.items())]
            yield (
                f"partitions of {len(never):,} topics of {here} never began to cross: {named(rows)}; they are mirrored "
                f"from their beginning once {self.flow.name} goes on"
            )
        schemas, clusters = self.flow.schemas_topic, self.topology.clusters
        if schemas is not None:
            yield registry_home(schemas, clusters[here], clusters[there])
        policy = self.surveying.policy
        gone = sorted(name for name in mirrored.gone if policy.source_name(name) in view.topics)
        if gone:
            yield (
                f"{named(gone)} {'is' if len(gone) == 1 else 'are'} no longer on {there}, and what {here} has of it is "
                f"mirrored anew once {self.flow.name} goes on"
            )


def _undecided(findings: Sequence[Finding]) -> Iterator[str]:
    """What can't be told stranded from mirrored yet."""
    unclear = (FindingKind.HELD_BACK, FindingKind.REFUSED)
    return (one.message for one in findings if one.kind in unclear)
