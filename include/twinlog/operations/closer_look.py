"""What both clusters of a flow say when they are asked for more than what they are: what would hurt if a broker were
lost; and of a flow that has run, its state, how far behind it is and how old its newest heartbeat is. Of a flow whose
source does not answer, the target alone says its state and the age of its newest heartbeat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.flow_store import FlowStore
from twinlog.cluster.metadata import ClusterMetadata, Topic
from twinlog.cluster.refusals import principal_of
from twinlog.cluster.topic_admin import ClusterDefaults, cluster_defaults
from twinlog.intake.extensions import naming_of
from twinlog.ledger.proof_state import LastVerdict, ProofStore
from twinlog.ledger.store import Ledger
from twinlog.model.flow_state import FlowRecord
from twinlog.model.lanes import state_topic
from twinlog.model.naming import NamingPolicy
from twinlog.model.topology import Flow, Topology
from twinlog.model.twin_topics import replication_factor
from twinlog.operations.heartbeat import heartbeat_age
from twinlog.operations.lag import Lag, measure
from twinlog.operations.own_topics import (
    PlannedTopic,
    own_topics_on_source,
    own_topics_on_target,
    planned_on_source,
    planned_on_target,
    planned_topic,
    probe_topic,
)
from twinlog.operations.preflight import PreflightSide, PreflightWarning, preflight
from twinlog.operations.storage import storage_of
from twinlog.operations.twin_planning import facts

AccessFor = Callable[[Flow, str], ClusterAccess]
"""How a flow reaches its `source` or `target`; `twinlog.cluster.access.flow_access` with the topology filled in."""


@dataclass(frozen=True)
class Past:
    """What the target and the ledger know of a flow that has run."""

    state: str
    lag: Lag | None
    """None where the source does not answer."""
    heartbeat_age_s: float | None
    last_run: str | None
    last_verdict: LastVerdict | None
    """Of the last reconciliation."""


@dataclass(frozen=True)
class CloserLook:
    """One flow whose clusters both answer."""

    preflight: tuple[PreflightWarning, ...]
    past: Past | None
    """None where the flow has never run."""


def look_closer(
    topology: Topology,
    flow: Flow,
    accesses: AccessFor,
    taken: list[Topic],
    views: tuple[ClusterMetadata, ClusterMetadata],
) -> CloserLook:
    """`taken` are the topics that the flow takes, `views` what source and target said of themselves."""
    policy = naming_of(flow)
    source, target = accesses(flow, "source"), accesses(flow, "target")
    with target.raw() as there, source.raw(beside=there) as here:
        defaults = there.run(cluster_defaults(there, probe_topic(flow)))
        default = None if defaults is None else defaults.min_in_sync
        twins = _twins(flow, policy, taken, len(views[1].brokers), defaults)
        new = [topic for topic in twins.values() if topic is not None and topic.name not in views[1].topics]
        warnings = there.run(
            preflight(
                PreflightSide(
                    here,
                    views[0],
                    principal_of(source.settings),
                    [*(topic.name for topic in taken), *own_topics_on_source(flow)],
                    planned=planned_on_source(flow, views[0]),
                ),
                PreflightSide(
                    there,
                    views[1],
                    principal_of(target.settings),
                    [*twins, *own_topics_on_target(flow)],
                    planned=[*new, *planned_on_target(flow, views[1], default)],
                ),
            )
        )
        if state_topic(flow.source, flow.target) not in views[1].topics:
            return CloserLook(tuple(warnings), None)
        record = there.run(FlowStore(there, flow.name, state_topic(flow.source, flow.target)).read())
        lag = there.run(measure(here, there, flow, policy, taken))
        age_s = heartbeat_age(flow, target, there)
    return CloserLook(tuple(warnings), _past(topology, flow, record, lag, age_s))


def look_at_target(topology: Topology, flow: Flow, accesses: AccessFor, view: ClusterMetadata) -> CloserLook:
    """What the target alone knows of the flow; `view` is what it said of itself."""
    if state_topic(flow.source, flow.target) not in view.topics:
        return CloserLook((), None)
    target = accesses(flow, "target")
    with target.raw() as there:
        record = there.run(FlowStore(there, flow.name, state_topic(flow.source, flow.target)).read())
        age_s = heartbeat_age(flow, target, there)
    return CloserLook((), _past(topology, flow, record, None, age_s))


def _past(topology: Topology, flow: Flow, record: FlowRecord, lag: Lag | None, heartbeat_age_s: float | None) -> Past:
    """With what the ledger and its neighbours know."""
    ledger = Ledger(topology.ledger_for(flow), flow.source, flow.target)
    with storage_of(f"the ledger of {flow.name}"):
        verdict, last_run = ProofStore(ledger).last(), ledger.last_run()
    state = str(record.state) if flow.enabled else "disabled"
    return Past(state, lag, heartbeat_age_s, last_run, verdict)


def _twins(
    flow: Flow, policy: NamingPolicy, taken: list[Topic], brokers: int, defaults: ClusterDefaults | None
) -> dict[str, PlannedTopic | None]:
    """Each topic's twin as a sync would make it; None where the target's default decides and is not known."""
    twins: dict[str, PlannedTopic | None] = {}
    for topic in taken:
        name = policy.target_name(topic.name)
        factor = None if defaults is None else defaults.replication_factor
        replicas = replication_factor(flow.replication_factor, facts(topic), brokers, factor)
        default = None if defaults is None else defaults.min_in_sync
        twins[name] = planned_topic(name, replicas, default) if replicas > 0 else None
    return twins
