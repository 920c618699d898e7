"""Looks at both clusters of a flow that has failed over, and makes the plan of its failback; changes nothing.

The topics that go home are those that were mirrored: the target's twins for which there is a position, or, where the
target has forgotten it in the meantime, an entry of the ledger. What else has been made on the target stays there.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from twinlog.cluster.committed import fetch_positions
from twinlog.cluster.inventory import settled_offsets
from twinlog.cluster.log_offsets import OffsetAt
from twinlog.cluster.metadata import ClusterMetadata
from twinlog.cluster.raw import RawClient
from twinlog.cluster.span_reader import SpanReader
from twinlog.errors import LedgerError
from twinlog.intake.extensions import naming_of, topics_of
from twinlog.ledger.failbacks import Failbacks, StrandedRecord
from twinlog.ledger.last_positions import last_positions
from twinlog.ledger.pairs import recorded_pairs
from twinlog.ledger.store import Ledger
from twinlog.model.failback import STEPS, Damage, DamagedPartition, Mode, StrandedSpan, damaged, stranded
from twinlog.model.flow_state import FlowRecord, State
from twinlog.model.lanes import position_group
from twinlog.model.offsets import TopicPartition
from twinlog.model.plan import Partitions
from twinlog.model.positions import Position
from twinlog.model.topology import Flow, Topology
from twinlog.operations.directions import with_way_home
from twinlog.operations.failback_plan import (
    LISTED_AT_MOST,
    FailbackPlan,
    FailbackRequest,
    StrandedListed,
    StrandedPartition,
)
from twinlog.operations.flow_gate import record_of
from twinlog.operations.recording import bring_up_to_date
from twinlog.operations.returned_cluster import not_whole
from twinlog.operations.run_scope import Ends
from twinlog.operations.schema_registry import registry_conflicts
from twinlog.operations.survey import survey

STRANDED_TOPIC = ".stranded"


@dataclass(frozen=True)
class Mirrored:
    """What a flow has mirrored, by the twin, and what of it the target no longer remembers."""

    positions: Mapping[TopicPartition, Position]
    forgotten: Mapping[TopicPartition, Position]

    @property
    def topics(self) -> list[str]:
        return sorted({twin.topic for twin in self.positions})


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

    def mirrored(self, target: RawClient) -> Mirrored:
        """Every partition that was mirrored to a topic which is still there."""
        known = target.run(fetch_positions(target, position_group(self.flow.name)))
        bring_up_to_date(self.ledger, self.flow, self.ends.target, target, set())
        missing = [pair for pair in recorded_pairs(self.ledger)[0] if pair.target not in known]
        forgotten = last_positions(self.ledger, missing)
        names = {twin.topic for twin in (*known, *forgotten)}
        topics = target.run(target.metadata(names)).topics if names else {}

        def current(positions: Mapping[TopicPartition, Position]) -> dict[TopicPartition, Position]:
            return {
                twin: position
                for twin, position in positions.items()
                if twin.topic in topics and topics[twin.topic].topic_id == position.target_topic_id
            }

        return Mirrored({**current(forgotten), **current(known)}, current(forgotten))

    def survey(self, source: RawClient, target: RawClient, mirrored: Mirrored) -> Partitions:
        """The mirrored partitions that are on both sides, with their positions, forgotten ones too."""
        policy = naming_of(self.flow)
        names = [name for twin in mirrored.topics if (name := policy.source_name(twin)) is not None]
        found = target.run(survey(source, target, self.flow, policy, names)).partitions
        return replace(found, positions=[mirrored.positions.get(pair.target) for pair in found.pairs])

    def _looked(self, plan: FailbackPlan, source: RawClient, target: RawClient) -> FailbackPlan:
        policy, request = naming_of(self.flow), plan.request
        view = source.run(source.metadata())
        health = tuple(not_whole(self.flow.source, view))
        mirrored = self.mirrored(target)
        topics = {twin: name for twin in mirrored.topics if (name := policy.source_name(twin)) is not None}
        found = self.survey(source, target, mirrored)
        broken = [*damaged(found), *self._missing(mirrored, view)]
        anew = self._anew(request, topics, broken)
        spans = [span for span in stranded(found) if span.pair.target_topic not in anew]
        listed: list[StrandedRecord] = []
        rows = tuple(self._stranded(source, target, mirrored, spans, listed))
        refused = [] if request.accept_degraded else [f"{problem}; wait for it, or accept it" for problem in health]
        left = [one.message for one in broken if policy.target_name(one.topic) not in anew]
        if left:
            refused += [*left, "rebuild the damaged topics too, or all of them: see the options of `twinlog failback`"]
        schemas = self.flow.schemas_topic
        if schemas is not None and request.mode is Mode.RESUME:
            refused += registry_conflicts(source, target, schemas)
        delete = {topics[twin]: str(view.topics[topics[twin]].topic_id) for twin in anew if topics[twin] in view.topics}
        return replace(
            plan,
            refused=tuple(refused),
            health=health,
            damaged=tuple(one.message for one in broken),
            stranded=rows,
            records=tuple(_listed(record) for record in listed[:LISTED_AT_MOST]),
            topics=topics,
            delete=delete,
            anew=tuple(sorted(anew)),
            waiting=self._waiting(target, mirrored, anew),
            notes=tuple(self._notes(target, topics)),
        )

    def _missing(self, mirrored: Mirrored, view: ClusterMetadata) -> Iterator[DamagedPartition]:
        policy = naming_of(self.flow)
        for twin, position in mirrored.positions.items():
            name = policy.source_name(twin.topic)
            topic = None if name is None else view.topics.get(name)
            if name is not None and (topic is None or twin.partition >= len(topic.partitions)):
                was = f"topic {position.source_topic_id}"
                yield DamagedPartition(name, twin.partition, Damage.MISSING, was, "nothing")

    def _anew(
        self, request: FailbackRequest, topics: Mapping[str, str], broken: Sequence[DamagedPartition]
    ) -> frozenset[str]:
        """The twins of the topics that are to be rebuilt."""
        if request.mode is Mode.REBUILD:
            return frozenset(topics)
        wrong = {one.topic for one in broken} if request.rebuild_damaged else set()
        return frozenset(twin for twin, name in topics.items() if name in wrong)

    def _stranded(
        self,
        source: RawClient,
        target: RawClient,
        mirrored: Mirrored,
        spans: Sequence[StrandedSpan],
        listed: list[StrandedRecord],
    ) -> Iterator[StrandedPartition]:
        twins = [span.pair.target for span in spans]
        view = target.run(target.metadata({twin.topic for twin in twins})) if twins else None
        ends = {} if view is None else target.run(settled_offsets(target, view, twins, OffsetAt.LAST_STABLE)).offsets
        for span in spans:
            pair, records = span.pair, 0
            for part in stranded_parts(source, span):
                records += len(part)
                listed += part[: max(0, LISTED_AT_MOST - len(listed))]
            since = mirrored.positions[pair.target].target_end
            yield StrandedPartition(
                pair.source_topic,
                pair.target_topic,
                pair.partition,
                span.start,
                span.end,
                records,
                span.expired,
                since,
                max(since, ends.get(pair.target, since)),
            )

    def _waiting(self, target: RawClient, mirrored: Mirrored, anew: frozenset[str]) -> int:
        """Offsets on the target behind what came from the source, or, of what is rebuilt, all that it has."""
        twins = list(mirrored.positions)
        if not twins:
            return 0
        view = target.run(target.metadata(mirrored.topics))
        ends = target.run(settled_offsets(target, view, twins, OffsetAt.LAST_STABLE)).offsets
        starts = target.run(settled_offsets(target, view, twins, OffsetAt.LOG_START)).offsets

        def begin(twin: TopicPartition) -> int:
            start = starts.get(twin, 0)
            return start if twin.topic in anew else max(start, mirrored.positions[twin].target_end)

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
                f"{', '.join(stays[:5])}{', ...' if len(stays) > 5 else ''}"
            )


def stranded_parts(source: RawClient, span: StrandedSpan) -> Iterator[list[StrandedRecord]]:
    """The committed records of a span, in order, as they come."""
    reader, at = SpanReader(source, span.pair.source, span.end), span.start
    while at < span.end:
        found, at = source.run(reader.records(at))
        yield [
            StrandedRecord(
                span.pair.source_topic,
                span.pair.partition,
                record.offset,
                record.timestamp_ms,
                record.key,
                record.value,
                [(header.key, header.value) for header in record.headers],
            )
            for record in found
        ]


def _listed(record: StrandedRecord) -> StrandedListed:
    key = None if record.key is None else record.key.decode(errors="replace")
    return StrandedListed(record.topic, record.partition, record.offset, record.timestamp_ms, key)
