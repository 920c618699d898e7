"""What a takeover loses: offsets of the source that were ready and are not on the target.

The source says it while it answers. Without it, the last that was seen of it does: each position notes how far the
source was ready when it was committed, and each readiness table where its logs ended. What was written after that,
nobody knows.

How old that is can't be read without the source either. What waits of a partition was written after what was copied of
it, so the age of the last copied record is the most it can be; and of all that nobody has seen, the age of the newest
heartbeat is.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinlog.intake.extensions import naming_of
from twinlog.model.offsets import TopicPartition
from twinlog.model.positions import Position
from twinlog.model.takeover import TopicLoss
from twinlog.model.topology import Flow
from twinlog.operations.lag import PartitionLag, max_known, sum_known
from twinlog.operations.source_look import carries_data

_NAMED = 5


@dataclass(frozen=True, slots=True)
class Missing:
    """What of one partition is known to be missing on the target."""

    twin: TopicPartition
    records: int
    last_copied: int
    """The target offset of the last copied record; below 0 where there is none."""


@dataclass(frozen=True)
class Losses:
    """By topic, and in all."""

    topics: tuple[TopicLoss, ...]
    records: int | None
    seconds: float | None
    note: str


def said_losses(flow: Flow, lags: Mapping[TopicPartition, PartitionLag]) -> Losses:
    """By what the source says."""
    found = _by_topic(flow, lags)
    note = f"as {flow.source} says, at {clock(time.time())}"
    unknown = sorted(loss.topic for loss in found if loss.records is None)
    if unknown:
        note += f"; it can't say of {listed_topics(unknown)}"
    seconds = max_known(loss.seconds for loss in found)
    return Losses(found, sum_known(loss.records for loss in found), _rounded(seconds), note)


def missing(
    flow: Flow, positions: Mapping[TopicPartition, Position], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Missing]:
    """By partition of the source, what was seen of it (`ends` beside the positions) and is not on the target."""
    policy = naming_of(flow)
    found: dict[TopicPartition, Missing] = {}
    for twin, position in positions.items():
        topic = policy.source_name(twin.topic)
        if topic is None or not carries_data(flow, topic):
            continue
        source = TopicPartition(topic, twin.partition)
        end = max(position.seen_end, ends.get(source, 0))
        if end > position.offset:
            found[source] = Missing(twin, end - position.offset, position.target_end - 1)
    return found


def seen_losses(
    flow: Flow,
    missed: Mapping[TopicPartition, Missing],
    copied_ms: Mapping[TopicPartition, int],
    heartbeat_age_s: float | None,
) -> Losses:
    """By what was seen of a source that does not answer; `copied_ms` says of twins how old their last record is."""
    now_ms = time.time() * 1000
    lags = {
        source: PartitionLag(
            one.records, max(0.0, now_ms - copied_ms[one.twin]) / 1000 if one.twin in copied_ms else None
        )
        for source, one in missed.items()
    }
    found = _by_topic(flow, lags)
    note = f"by the last that was seen of {flow.source}, which does not answer: more may have been written"
    ages = [loss.seconds for loss in found if loss.seconds is not None]
    ages += [] if heartbeat_age_s is None else [heartbeat_age_s]
    if ages:
        note += "; seconds are at most: since its newest heartbeat and the last record that was copied of a topic"
    undated = [loss.topic for loss in found if loss.seconds is None]
    if undated:
        note += f"; since when {listed_topics(undated)} waits is not known"
    return Losses(found, sum(one.records for one in missed.values()), _rounded(max(ages, default=None)), note)


def unknown_losses(flow: Flow) -> Losses:
    """Of a flow that has no positions."""
    return Losses((), None, None, f"{flow.source} does not answer, and nothing was ever mirrored from it")


def listed_topics(topics: Sequence[str]) -> str:
    """Some by name, the others by number."""
    more = f" and {len(topics) - _NAMED:,} more" if len(topics) > _NAMED else ""
    return f"{', '.join(topics[:_NAMED])}{more}"


def _by_topic(flow: Flow, lags: Mapping[TopicPartition, PartitionLag]) -> tuple[TopicLoss, ...]:
    policy = naming_of(flow)
    by_topic: dict[str, list[PartitionLag]] = {}
    for partition, lag in lags.items():
        if lag.records != 0:
            by_topic.setdefault(partition.topic, []).append(lag)
    return tuple(
        TopicLoss(
            topic,
            policy.target_name(topic),
            sum_known(lag.records for lag in found),
            _rounded(max_known(lag.seconds for lag in found)),
        )
        for topic, found in sorted(by_topic.items())
    )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def clock(at_s: float) -> str:
    """A moment as people read it."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at_s))
