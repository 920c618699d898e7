"""What a takeover loses: offsets of the source that were ready and are not on the target.

The source says it while it answers. Without it, the last that was seen of it does: each position notes how far the
source was ready when it was committed, and each readiness table where its logs ended. What was written after that,
nobody knows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from twinlog.intake.extensions import naming_of
from twinlog.model.offsets import TopicPartition
from twinlog.model.positions import Position
from twinlog.model.takeover import TopicLoss
from twinlog.model.topology import Flow
from twinlog.operations.lag import PartitionLag, max_known, sum_known
from twinlog.operations.source_look import carries_data


@dataclass(frozen=True)
class Losses:
    """By topic, and in all."""

    topics: tuple[TopicLoss, ...]
    records: int | None
    seconds: float | None
    note: str


def losses(
    flow: Flow,
    positions: Mapping[TopicPartition, Position],
    lags: Mapping[TopicPartition, PartitionLag] | None,
    ends: Mapping[TopicPartition, int],
    heartbeat_age_s: float | None,
) -> Losses:
    """`lags` is what the source says, `ends` and `heartbeat_age_s` are what is known without it."""
    policy = naming_of(flow)
    if lags is not None:
        found = _by_topic(flow, lags)
        note = f"as {flow.source} says, at {_clock()}"
        unknown = sorted(loss.topic for loss in found if loss.records is None)
        if unknown:
            note += f"; it can't say of {', '.join(unknown)}"
        seconds = max_known(loss.seconds for loss in found)
        return Losses(found, sum_known(loss.records for loss in found), _rounded(seconds), note)
    if not positions:
        return Losses((), None, None, f"{flow.source} does not answer, and nothing was ever mirrored from it")
    missing: dict[TopicPartition, PartitionLag] = {}
    for twin, position in positions.items():
        topic = policy.source_name(twin.topic)
        if topic is None or not carries_data(flow, topic):
            continue
        source = TopicPartition(topic, twin.partition)
        end = max(position.seen_end, ends.get(source, 0))
        if end > position.offset:
            missing[source] = PartitionLag(end - position.offset, None)
    found = _by_topic(flow, missing)
    at_most = "" if heartbeat_age_s is None else "; seconds are the age of its newest heartbeat, at most that much"
    note = f"by the last that was seen of {flow.source}, which does not answer: more may have been written{at_most}"
    records = sum(lag.records or 0 for lag in missing.values())
    return Losses(found, records, _rounded(heartbeat_age_s), note)


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


def _clock() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
