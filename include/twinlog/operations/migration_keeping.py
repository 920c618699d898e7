"""A migration's record on the target: begun, gone on with, and moved from phase to phase.

It is kept beside the flow's state and changed as that is, so of two machines that would go on with a migration at once
one finds what the other has done.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.metadata import ClusterMetadata
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import principal_of
from twinlog.errors import ConfigurationError, FlowStateError
from twinlog.intake.extensions import naming_of
from twinlog.model.flow_state import FlowRecord, State
from twinlog.model.lanes import state_topic
from twinlog.model.migration import Migration, Phase
from twinlog.model.naming import HEARTBEATS, checkpoints_topic, offset_syncs_topic
from twinlog.model.offsets import TopicPartition
from twinlog.model.plan import StartAt
from twinlog.model.topology import Flow
from twinlog.operations.internal_topics import create_internal_topics
from twinlog.operations.lease import flow_store
from twinlog.operations.run_scope import Ends


@dataclass(frozen=True)
class Asked:
    """What is asked of a migration. None, or nothing, of what it already has asks for no change."""

    from_ms: int | None = None
    from_offsets: dict[TopicPartition, int] = field(default_factory=dict)
    priority: tuple[str, ...] | None = None
    blackouts: tuple[str, ...] | None = None
    throttle: float | None = None
    """MB/s over all tasks, from now on."""
    adopts: str | None = None


def migration_of(flow: Flow, access: ClusterAccess) -> Migration | None:
    """The flow's migration, if there is one; `access` is of the target."""
    with access.raw() as target:
        topic = state_topic(flow.source, flow.target)
        if target.run(target.metadata([topic])).topics[topic].is_missing:
            return None
        return target.run(flow_store(flow, target).read()).migration


def begin(flow: Flow, ends: Ends, asked: Asked, migration_id: str) -> Migration:
    """The migration under way, with what is asked of it now; a new one of this id where there is none."""
    if StartAt(flow.topics_from) is not StartAt.EARLIEST:
        raise ConfigurationError(
            f"{flow.name} begins topics at their ends, and a migration moves all that is kept: set its topics.from to "
            "earliest; --from and --from-offset leave out what is older"
        )
    known = migration_of(flow, ends.target)
    if known is not None and known.is_cut_over:
        # The source may be gone by now, and nothing is left that could be asked for.
        return known
    with ends.target.raw() as target, ends.source.raw(beside=target) as source:
        view = target.run(target.metadata())
        there = source.run(source.metadata())
        _demand_partitions(flow, there, asked)
        names = view.topics.keys() | there.topics.keys()
        target.run(create_internal_topics(target, flow, flow.lanes, view, principal_of(ends.target.settings)))

        def decide(record: FlowRecord) -> FlowRecord:
            migration = record.migration
            if migration is None:
                if record.state is not State.ACTIVE:
                    raise FlowStateError(f"{flow.name} is {record.state}, so it can't be migrated")
                # Of a flow that has run before they are its own, unless MirrorMaker 2 was there as well.
                shared = _shared_names(flow) if not record.lanes or names & _mirror_maker_s(flow) else ()
                found = tuple(name for name in shared if name in names)
                migration = Migration(migration_id, started_at_ms=int(time.time() * 1000), found=found)
            migration = _changed(flow, migration, asked)
            rate = record.throttle_bytes_per_s if record.migration is not None else (flow.throttle or 0) * 1e6
            rate = rate if asked.throttle is None else asked.throttle * 1e6
            return replace(record, migration=migration, throttle_bytes_per_s=int(rate))

        record = target.run(flow_store(flow, target).change(decide))
    if record is None or record.migration is None:
        raise FlowStateError(f"{flow.name}: the migration's record could not be written")
    return record.migration


def change(flow: Flow, target: RawClient, migration_id: str, decide: Callable[[Migration], Migration]) -> Migration:
    """Change the migration's record; another migration than ours, or none, is nothing to go on with."""

    def changed(record: FlowRecord) -> FlowRecord:
        if record.migration is None or record.migration.id != migration_id:
            raise FlowStateError(f"{flow.name}: migration {migration_id} is not the one under way; begin again")
        return replace(record, migration=decide(record.migration))

    record = target.run(flow_store(flow, target).change(changed))
    if record is None or record.migration is None:
        raise FlowStateError(f"{flow.name}: the migration's record could not be written")
    return record.migration


def end(flow: Flow, target: RawClient, migration_id: str) -> None:
    """The flow is part of no migration any more."""

    def ended(record: FlowRecord) -> FlowRecord | None:
        if record.migration is None or record.migration.id != migration_id:
            return None
        return replace(record, migration=None)

    target.run(flow_store(flow, target).change(ended))


def _demand_partitions(flow: Flow, there: ClusterMetadata, asked: Asked) -> None:
    """A slip of the pen would copy from the beginning what was to begin later."""
    for one in asked.from_offsets:
        topic = there.topics.get(one.topic)
        if topic is None or one.partition >= len(topic.partitions):
            raise ConfigurationError(f"cluster {flow.source} shows no partition {one}, which was to begin at an offset")


def _changed(flow: Flow, migration: Migration, asked: Asked) -> Migration:
    """What is asked for in place of what was; where copying began is past changing once positions are there."""
    begins = tuple(sorted((one.topic, one.partition, offset) for one, offset in asked.from_offsets.items()))
    wanted = replace(
        migration,
        from_ms=asked.from_ms if asked.from_ms is not None else migration.from_ms,
        from_offsets=begins or migration.from_offsets,
        priority=asked.priority if asked.priority is not None else migration.priority,
        blackouts=asked.blackouts if asked.blackouts is not None else migration.blackouts,
        adopts=asked.adopts or migration.adopts,
    )
    settled = (wanted.from_ms, wanted.from_offsets, wanted.adopts)
    if settled != (migration.from_ms, migration.from_offsets, migration.adopts) and (
        migration.positioned or migration.phase is not Phase.SETTINGS
    ):
        raise FlowStateError(
            f"the migration of {flow.name} is at its {migration.phase}: where it begins, and what it adopts, was "
            "settled before its first record; go on without --from, --from-offset and --adopt"
        )
    return wanted


def _shared_names(flow: Flow) -> tuple[str, ...]:
    """Topics that other mirrors, or other flows, use under the same names."""
    names = (offset_syncs_topic(flow), checkpoints_topic(flow), HEARTBEATS, naming_of(flow).target_name(HEARTBEATS))
    return tuple(dict.fromkeys(names))


def _mirror_maker_s(flow: Flow) -> frozenset[str]:
    """What a MirrorMaker 2 between the two clusters keeps for itself on the target."""
    mark = flow.replication_policy_separator
    return frozenset(f"mm2-{what}{mark}{flow.source}{mark}internal" for what in ("configs", "offsets", "status"))
