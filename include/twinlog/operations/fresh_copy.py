"""A fresh copy of topics, made by a small flow of its own (see `model.fresh_flow`) into internal topics of the target.

It is copied exactly once and on Spark, as any flow copies; it goes on where it stopped; it keeps what it was given,
whatever the source's retention. `rows` says which source offset became which of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

import pyarrow as pa  # noqa: TID253 - no DAG imports an operation at its top

from twinlog.cluster.committed import fetch_positions
from twinlog.cluster.copy_order import Executor as CopyExecutor
from twinlog.cluster.group_deletion import delete_groups
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import demand, sentences
from twinlog.cluster.topic_admin import delete_topics
from twinlog.cluster.topic_settings import change_settings
from twinlog.cluster.visibility import setting_visible
from twinlog.errors import RepairError
from twinlog.intake.extensions import naming_of
from twinlog.ledger.folder import Folder
from twinlog.ledger.proof_rows import parts_of
from twinlog.ledger.schema import GAP_COLUMNS
from twinlog.ledger.store import Ledger
from twinlog.model.fresh_flow import fresh_flow
from twinlog.model.lanes import journal_topic, position_group, state_topic
from twinlog.model.made import made_topic
from twinlog.model.offsets import PartitionPair, Segment, TopicPartition
from twinlog.model.positions import Position
from twinlog.model.repair import BESIDE_RECORDS
from twinlog.model.topology import Flow, Topology
from twinlog.model.twin_settings import SettingChange
from twinlog.operations.mirror import Mirror
from twinlog.operations.reconcile import EVERYTHING_NEW, Reconciling, Scope
from twinlog.operations.reconcile_evidence import Executor as ProofExecutor
from twinlog.operations.recording import bring_up_to_date
from twinlog.operations.run_scope import Ends
from twinlog.operations.sync import Sync
from twinlog.operations.twin_planning import Sides

MOST_RUNS = 10_000
_KEPT = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
"""Of a fresh topic: nothing of it goes before it is swapped."""

Rows = Mapping[tuple[str, int], list[Segment]]
"""In source order, by source topic id and partition."""


@dataclass(frozen=True)
class Executors:
    """By whom copying and comparing are carried out: here, or on Spark."""

    copy: CopyExecutor
    prove: ProofExecutor
    tasks: int


class FreshCopy:
    """The fresh copy of one repair's topics."""

    def __init__(
        self,
        topology: Topology,
        flow: Flow,
        ends_of: Callable[[Topology, Flow], Ends],
        plan_id: str,
        topics: Collection[str],
    ) -> None:
        self._source = flow.source
        self._topics = sorted(topics)
        self._topology, self._small = fresh_flow(topology, flow, plan_id, self._topics)
        self._ends = ends_of(self._topology, self._small)
        self._ledger = Ledger(self._topology.ledger_for(self._small), self._small.source, self._small.target)
        self._policy = naming_of(self._small)

    def begin(self) -> None:
        """Make what is not there yet."""
        ends = self._ends
        with ends.target.raw() as target, ends.source.raw(beside=target) as source:
            sides = Sides(source, source.run(source.metadata()), target, target.run(target.metadata()))
            made = Sync(self._topology, self._small, ends.source, ends.target).prepare(sides)
            if made.failed:
                raise RepairError("; ".join(made.failed))
            self._keep_all(target)

    def catch_up(self, execute: Executors) -> None:
        """Copy until a run has left nothing of what it found."""
        mirror = Mirror(self._topology, self._small, self._ends, self._ledger)
        for _ in range(MOST_RUNS):
            done = mirror.run(execute.copy, tasks=execute.tasks)
            if done.skipped is not None:
                raise RepairError(done.skipped)
            if done.failures:
                raise RepairError("; ".join(done.failures[:5]))
            if not done.left_records:
                return
        raise RepairError(f"{self._source} is written to faster than it can be copied; throttle its producers")

    def demand_equal(self, execute: Executors, *, whole: bool) -> None:
        """Compare it with the source: the whole, or what was not compared yet."""
        scope = Scope(full=True) if whole else EVERYTHING_NEW
        reconciling = Reconciling(self._topology, self._small, self._ends, self._ledger)
        found = reconciling.run(scope, execute.prove, tasks=execute.tasks)
        if any(one.kind not in BESIDE_RECORDS for one in found.differences):
            raise RepairError(
                f"the fresh copy is not equal to {self._source}, so no twin was touched: {found.sentence}"
            )

    def positions(self, target: RawClient) -> dict[TopicPartition, Position]:
        """How far each source partition is copied, by the source's names."""
        found = target.run(fetch_positions(target, position_group(self._small.name)))
        return {
            TopicPartition(topic, fresh.partition): position
            for fresh, position in found.items()
            if (topic := self._policy.source_name(fresh.topic)) is not None
        }

    def rows(self, target: RawClient) -> Rows:
        """Everything that is copied, up to the positions that were read before."""
        bring_up_to_date(self._ledger, self._small, self._ends.target, target, set())
        return rows_by_pair(self._ledger.read())

    def place_of(self, source: TopicPartition) -> TopicPartition:
        """Where a source partition is copied to."""
        return TopicPartition(self._policy.target_name(source.topic), source.partition)

    def clear(self) -> Iterator[str]:
        """Remove all that the small flow has on the target and beside the ledger; answers what could not be."""
        small, ledger = self._small, self._ledger
        names = [
            *(self._policy.target_name(name) for name in self._topics),
            journal_topic(small.source, small.target),
            made_topic(small.source, small.target),
            state_topic(small.source, small.target),
        ]
        with self._ends.target.raw() as target:
            view = target.run(target.metadata(names))
            ids = {name: topic.topic_id for name, topic in view.topics.items() if topic.topic_id is not None}
            refused = target.run(delete_topics(target, ids))
            by_topic = {f"topic {name}": why for name, why in refused.items()}
            groups = target.run(delete_groups(target, [position_group(small.name)]))
            by_group = {f"group {name}": why for name, why in groups.items()}
            left = "it is left over from a repair"
            yield from sentences(target.alias, target.principal, "DELETE", {**by_topic, **by_group}, left)
        ledger.folder.destroy()
        for kind in ("_reconciled", "_readiness"):
            Folder(ledger.beside(kind), ledger.filesystem).destroy()

    def _keep_all(self, target: RawClient) -> None:
        topics = [self._policy.target_name(name) for name in self._topics]
        changes = [SettingChange(topic, name, None, value) for topic in topics for name, value in _KEPT.items()]
        refused = target.run(change_settings(target, changes))
        by_topic = {f"topic {name}": why for name, why in refused.items()}
        demand(target.alias, target.principal, "ALTER_CONFIGS", by_topic, "nothing was copied again")
        for change in changes:
            target.run(setting_visible(target, change))


def rows_by_pair(rows: pa.Table) -> Rows:
    """The ledger's rows as the segments that were journalled, in source order, by source topic id and partition."""
    found: dict[tuple[str, int], list[Segment]] = {}
    ordered = rows.sort_by([("source_start", "ascending"), ("count", "ascending")])
    for row in ordered.to_pylist():
        pair = PartitionPair(
            row["source_topic"],
            UUID(row["source_topic_id"]),
            row["target_topic"],
            UUID(row["target_topic_id"]),
            row["partition"],
        )
        gaps = {kind: row[column] for kind, column in GAP_COLUMNS.items() if row[column]}
        for first, records, digest in parts_of(row["digest"], row["count"]):
            segment = Segment(
                pair,
                row["source_start"] + first,
                row["target_start"] + first,
                records,
                row["first_timestamp_ms"],
                row["last_timestamp_ms"],
                row["bytes"] * records // max(row["count"], 1),
                digest,
                {} if first else gaps,
            )
            found.setdefault((row["source_topic_id"], row["partition"]), []).append(segment)
    return found
