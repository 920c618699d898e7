"""The topics beside the mirrored ones that a flow depends on, on either side, and how those that are missing will be
made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinlog.cluster.metadata import ClusterMetadata
from twinlog.model.lanes import journal_topic, state_topic
from twinlog.model.made import made_topic
from twinlog.model.naming import HEARTBEATS, checkpoints_topic, offset_syncs_topic
from twinlog.model.topology import Flow

KAFKA_INTERNAL = ("__consumer_offsets", "__transaction_state")
"""On the target they hold the flow's positions and the state of its transactions."""
ENOUGH_TO_LOSE_ONE = 3
"""A topic of so many replicas is made with min.insync.replicas 2."""


@dataclass(frozen=True, slots=True)
class PlannedTopic:
    """A topic that is about to be made; `min_in_sync` is None where it is not known what will hold."""

    name: str
    replicas: int
    min_in_sync: int | None = None


def planned_topic(name: str, replicas: int, default_min_in_sync: int | None) -> PlannedTopic:
    """As Twinlog makes a topic of which nothing else is said."""
    return PlannedTopic(name, replicas, 2 if replicas >= ENOUGH_TO_LOSE_ONE else default_min_in_sync)


def probe_topic(flow: Flow) -> str:
    """The name by which the target is asked what it would make of a topic; none of this name is ever made."""
    return f"twinlog.{flow.source}.{flow.target}.probe.internal"


def own_topics_on_target(flow: Flow) -> list[str]:
    """The topics on the target that a failover depends on, beside the twins."""
    syncs = [offset_syncs_topic(flow)] if flow.offset_syncs_topic_location == "target" else []
    return [*_own(flow), checkpoints_topic(flow), *syncs, *KAFKA_INTERNAL]


def own_topics_on_source(flow: Flow) -> list[str]:
    """Those on the source that show others how the flow is."""
    return [*_signs_on_source(flow)]


def planned_on_target(flow: Flow, view: ClusterMetadata, default_min_in_sync: int | None) -> list[PlannedTopic]:
    """The flow's own topics that the target does not have yet."""
    factors = dict.fromkeys(_own(flow), flow.journal_topic_replication_factor)
    if flow.emit_checkpoints_enabled:
        factors[checkpoints_topic(flow)] = flow.checkpoints_topic_replication_factor
    if flow.emit_offset_syncs_enabled and flow.offset_syncs_topic_location == "target":
        factors[offset_syncs_topic(flow)] = flow.offset_syncs_topic_replication_factor
    return _planned(factors, view, default_min_in_sync)


def planned_on_source(flow: Flow, view: ClusterMetadata) -> list[PlannedTopic]:
    """The same of the source, which is not asked what it would make of them."""
    return _planned(_signs_on_source(flow), view, None)


def _own(flow: Flow) -> list[str]:
    return [name(flow.source, flow.target) for name in (journal_topic, state_topic, made_topic)]


def _signs_on_source(flow: Flow) -> dict[str, int]:
    factors: dict[str, int] = {}
    if flow.emit_heartbeats_enabled:
        factors[HEARTBEATS] = flow.heartbeats_topic_replication_factor
    if flow.emit_offset_syncs_enabled and flow.offset_syncs_topic_location == "source":
        factors[offset_syncs_topic(flow)] = flow.offset_syncs_topic_replication_factor
    return factors


def _planned(factors: Mapping[str, int], view: ClusterMetadata, default_min_in_sync: int | None) -> list[PlannedTopic]:
    brokers = len(view.brokers)
    return [
        planned_topic(name, min(factor, brokers), default_min_in_sync)
        for name, factor in factors.items()
        if name not in view.topics
    ]
