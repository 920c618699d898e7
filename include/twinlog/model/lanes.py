"""Lanes: a fixed share of a flow's target partitions each, with one writer.

Neighbouring partitions of a topic share a lane, two by two, since a Produce request may carry one batch a partition:
alone in its lane, a partition would pay for a request a batch. No more than two, since a broker works on one request of
a connection at a time, and a topic of four is to have two tasks and so two connections. Consecutive twos go to
consecutive lanes, beginning at a lane that depends on the topic's name, so a topic's load is spread and many
one-partition topics do not all meet in lane 0. The answer never changes while the number of lanes stays; it changes
only after every old lane has been fenced, as each run does before it copies.
"""

from __future__ import annotations

import zlib

from twinlog.model.offsets import TopicPartition

NEIGHBOURS = 2
"""Partitions of a topic that share a lane before the next one is used."""


def lane_of(target: TopicPartition, lanes: int) -> int:
    """The lane that writes to `target`."""
    return (zlib.crc32(target.topic.encode()) + target.partition // NEIGHBOURS) % lanes


def transactional_id(flow: str, lane: int) -> str:
    return f"twinlog.{flow}.{lane}"


def state_transactional_id(flow: str) -> str:
    return f"twinlog.{flow}.state"


def trim_transactional_id(flow: str) -> str:
    """Of whoever removes entries from the flow's journal."""
    return f"twinlog.{flow}.trim"


def recovering_transactional_id(flow: str) -> str:
    """Of whoever appends what a twin lacks to a topic of its own."""
    return f"twinlog.{flow}.recovering"


def position_group(flow: str) -> str:
    """The group on the target under which the flow's positions are committed."""
    return f"twinlog.{flow}"


def journal_topic(source: str, target: str) -> str:
    return f"twinlog.{source}.{target}.journal.internal"


def is_journal(topic: str) -> bool:
    return topic.startswith("twinlog.") and topic.endswith(".journal.internal")


def state_topic(source: str, target: str) -> str:
    return f"twinlog.{source}.{target}.state.internal"
