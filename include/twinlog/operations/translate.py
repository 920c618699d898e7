"""A translator for a flow as it stands now. Nothing is asked of the source: it may be gone.

Both topics' ids come from the positions on the target, so an answer is given only for what was mirrored from the very
topic that the position vouches for. Brokers forget the positions of a flow that has stood still for long; the ledger
then says where they were.
"""

from __future__ import annotations

from collections.abc import Mapping

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.committed import fetch_positions
from twinlog.cluster.log_offsets import OffsetAt, list_offsets
from twinlog.cluster.raw import RawClient
from twinlog.intake.extensions import naming_of
from twinlog.ledger.answers import Twin
from twinlog.ledger.last_positions import last_positions
from twinlog.ledger.pairs import recorded_pairs
from twinlog.ledger.store import Ledger
from twinlog.ledger.translate import COLUMNS, Translator
from twinlog.ledger.two_way import RecordedWay, TwoWayTranslator
from twinlog.model.lanes import position_group
from twinlog.model.offsets import PartitionPair, TopicPartition
from twinlog.model.positions import Position
from twinlog.model.topology import Flow, Topology
from twinlog.model.way_home import WayHome
from twinlog.operations.directions import as_it_went, comes_back, other_direction
from twinlog.operations.flow_gate import record_of
from twinlog.operations.recording import bring_up_to_date


def translator(flow: Flow, access: ClusterAccess, ledger: Ledger) -> Translator:
    """Everything that is needed to translate the flow's offsets, read now."""
    with access.raw() as target:
        return Translator(*_read(flow, access, target, ledger))


def translator_as_it_stands(flow: Flow, access: ClusterAccess, ledger: Ledger) -> Translator:
    """The same without waiting for transactions that are open on the target: what those hold back is not known."""
    with access.raw() as target:
        positions = target.run(fetch_positions(target, position_group(flow.name), stable=False))
        forgotten = _forgotten(target, ledger, set(positions))
        view = target.run(target.metadata({partition.topic for partition in {**positions, **forgotten}}))
        ends = target.run(list_offsets(target, view, {**positions, **forgotten}, OffsetAt.LAST_STABLE)).offsets
        return Translator(*_with_twins(flow, target, ledger, {**positions, **forgotten}, ends))


def translator_of(
    topology: Topology, flow: Flow, access: ClusterAccess, ledger: Ledger, topic: str, *, reverse: bool = False
) -> Translator | TwoWayTranslator:
    """The translator for one topic of the source: where its name is mirrored both ways, or records of the target have
    gone home to it, one that knows both ways."""
    listed = comes_back(topology, flow)(topic)
    with access.raw() as target:
        topology = as_it_went(topology, flow, target.run(record_of(flow, target)))
    other = other_direction(topology, flow)
    if other is None or not comes_back(topology, flow)(topic):
        return translator(flow, access, ledger)
    home = Ledger(topology.ledger_for(other), other.source, other.target)
    # What is translated *to* is read last, see `two_way`; for the way home that is the other flow.
    if reverse:
        onward = translator(flow, access, ledger)
        return TwoWayTranslator(onward, RecordedWay(home).opposite(onward))
    way = RecordedWay(home)
    onward = translator(flow, access, ledger)
    return TwoWayTranslator(onward, way.opposite(onward), back_has_ended=isinstance(other, WayHome) and not listed)


def _read(flow: Flow, access: ClusterAccess, target: RawClient, ledger: Ledger) -> tuple[object, list[Twin]]:
    # The positions first: then the barrier, and the ledger behind it holds every row that a position vouches for.
    positions = target.run(fetch_positions(target, position_group(flow.name)))
    ends = bring_up_to_date(ledger, flow, access, target, set(positions)).data_ends
    forgotten = _forgotten(target, ledger, set(positions))
    if forgotten:
        ends = {**ends, **bring_up_to_date(ledger, flow, access, target, set(forgotten)).data_ends}
        positions = {**positions, **forgotten}
    return _with_twins(flow, target, ledger, positions, ends)


def _with_twins(
    flow: Flow,
    target: RawClient,
    ledger: Ledger,
    positions: Mapping[TopicPartition, Position],
    ends: Mapping[TopicPartition, int],
) -> tuple[object, list[Twin]]:
    policy = naming_of(flow)
    view = target.run(target.metadata({partition.topic for partition in positions}))
    starts = target.run(list_offsets(target, view, positions, OffsetAt.LOG_START)).offsets
    twins = []
    for partition, position in positions.items():
        topic = view.topics.get(partition.topic)
        source_name = policy.source_name(partition.topic)
        if topic is None or topic.topic_id is None or source_name is None or partition not in starts:
            continue
        current = topic.topic_id == position.target_topic_id
        twins.append(
            Twin(
                PartitionPair(
                    source_name, position.source_topic_id, partition.topic, topic.topic_id, partition.partition
                ),
                position.offset if current else None,
                starts[partition],
                ends.get(partition, starts[partition]),
            )
        )
    return ledger.read(COLUMNS), twins


def _forgotten(target: RawClient, ledger: Ledger, remembered: set[TopicPartition]) -> dict[TopicPartition, Position]:
    """The positions that the target has forgotten, of partitions that were mirrored to a topic which is still there."""
    recorded, _ = recorded_pairs(ledger)
    missing = [pair for pair in recorded if pair.target not in remembered]
    if not missing:
        return {}
    topics = target.run(target.metadata({pair.target_topic for pair in missing})).topics
    ids = {name: topic.topic_id for name, topic in topics.items() if topic.error is None}
    return last_positions(ledger, [pair for pair in missing if ids.get(pair.target_topic) == pair.target_topic_id])
