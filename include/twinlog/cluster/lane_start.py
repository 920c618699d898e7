"""Where a lane begins with each of its partitions: from the committed position, and the target as the fence left it."""

from __future__ import annotations

from dataclasses import replace

from twinlog.cluster.metadata import ClusterMetadata
from twinlog.cluster.target_partition import TargetPartition
from twinlog.errors import PartitionRefusedError
from twinlog.model.findings import FindingKind
from twinlog.model.offsets import GapKind, PartitionPair, Segment, TopicPartition, offsets_among
from twinlog.model.plan import PlannedRange
from twinlog.model.positions import NO_LEADER_EPOCH, Position
from twinlog.model.segment_builder import gaps_only


def starting_target(
    planned: PlannedRange, position: Position | None, metadata: ClusterMetadata, log_end: int
) -> TargetPartition:
    """Where a partition goes on: at its position, or, past what expired or where it has none, as planned."""
    pair, start, seen_end = planned.pair, planned.range.start, planned.seen_end
    leader = leader_of(metadata, pair.target)
    # A source topic made anew goes on behind what its predecessor left on the same twin.
    known_end = (
        position.target_end if position is not None and position.target_topic_id == pair.target_topic_id else None
    )
    if position is None or known_end is None or position.source_topic_id != pair.source_topic_id:
        # Committing a position at once, with or without records, is what makes the partition a mirrored one.
        carried = _gone(planned, start - planned.expired)
        if planned.skipped:
            carried[GapKind.SKIPPED] = planned.skipped
        target = TargetPartition(
            pair, start, NO_LEADER_EPOCH, known_end or 0, seen_end, log_end, leader, carried, touched=True
        )
        target.closing = closing(position, pair)
    elif position.offset < start:
        carried = _gone(planned, position.offset)
        target = TargetPartition(
            pair, start, NO_LEADER_EPOCH, known_end, seen_end, log_end, leader, carried, touched=True
        )
    else:
        # At the plan's start, or ahead of it where an earlier try got further. How far the source was seen is worth
        # a commit of its own: should the topic go before anything is copied, it says what was lost.
        target = TargetPartition(
            pair,
            position.offset,
            position.leader_epoch,
            known_end,
            max(seen_end, position.seen_end),
            log_end,
            leader,
            touched=seen_end > position.seen_end,
        )
    # The marker of the last transaction takes one offset; what lies beyond is to be looked at.
    if known_end is not None and log_end > known_end + 1:
        target.suspect(known_end, log_end)
    return target


def _gone(planned: PlannedRange, begin: int) -> dict[GapKind, int]:
    """The offsets from `begin` up to the range that retention removed: what came from the target is not lost."""
    start = planned.range.start
    returned = offsets_among(planned.returned, begin, start)
    counted = {GapKind.EXPIRED: start - begin - returned, GapKind.FILTERED: returned}
    return {kind: offsets for kind, offsets in counted.items() if offsets}


def closing(position: Position | None, pair: PartitionPair) -> Segment | None:
    """What closes the account of the source topic that was there before: the offsets that it had ready and that went
    with it. None where all of them had been copied, or it is the same topic still."""
    if position is None or position.source_topic_id == pair.source_topic_id or position.seen_end == position.offset:
        return None
    earlier = replace(pair, source_topic_id=position.source_topic_id, target_topic_id=position.target_topic_id)
    lost = {GapKind.RECREATED: position.seen_end - position.offset}
    return gaps_only(earlier, lost, position.seen_end, position.target_end)


def replaced(planned: PlannedRange, metadata: ClusterMetadata, cluster: str) -> PartitionRefusedError | None:
    """Why the target topic is not the one that the range was planned for, if so."""
    pair = planned.pair
    topic = metadata.topics.get(pair.target_topic)
    if topic is None or topic.error is not None or pair.partition >= len(topic.partitions):
        reason = "it is not there" if topic is None or topic.error is None else topic.error
        return PartitionRefusedError(
            pair.target,
            FindingKind.TARGET_MISSING,
            f"cluster {cluster}: {pair.target} can't be written to: {reason}; the next run creates what is missing",
        )
    if topic.topic_id != pair.target_topic_id:
        return PartitionRefusedError(
            pair.target,
            FindingKind.TARGET_REPLACED,
            f"cluster {cluster}: {pair.target_topic} was deleted and created again while it was being copied; the "
            "next run starts anew with it",
        )
    return None


def leader_of(metadata: ClusterMetadata, partition: TopicPartition) -> int | None:
    """Who leads a partition, if anybody does."""
    topic = metadata.topics.get(partition.topic)
    if topic is None or partition.partition >= len(topic.partitions):
        return None
    return topic.partitions[partition.partition].leader
