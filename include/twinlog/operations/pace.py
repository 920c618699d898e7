"""Measures whether a flow keeps up with its source: a constant number of requests a broker, however many partitions.

The source's rate is told from record times, in one look: the offsets from the first record that is stamped within the
last five minutes to the end. Two looks at log ends would need a wait between them, or a memory. What is backfilled with
old stamps is not counted; what is stamped ahead is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa  # noqa: TID253 - no DAG imports an operation at its top

from twinlog.cluster.inventory import log_sizes
from twinlog.cluster.log_offsets import AtTime, OffsetAt, list_offsets
from twinlog.cluster.raw import RawClient
from twinlog.cluster.topic_settings import read_settings
from twinlog.intake.extensions import naming_of
from twinlog.ledger.store import Ledger, LiveFile
from twinlog.model.offsets import TopicPartition
from twinlog.model.pace import WINDOW_S, PartitionPace, Retention, catch_up_s, earliest, summed
from twinlog.model.topology import Flow
from twinlog.operations.lag import PartitionLag, measure_partitions

RECENT_FILES = 20
RECENT_ROWS = 200_000
SHORTEST_S = 1.0
"""A run that was at it for less tells what there was to copy, not what could have been."""

_RETENTION = ("cleanup.policy", "retention.ms", "retention.bytes")


@dataclass(frozen=True, slots=True)
class TopicPace:
    """One topic of the source."""

    waiting_bytes: float | None
    until_expiry_s: float | None


@dataclass(frozen=True, slots=True)
class Pace:
    """A flow at one moment; what is not known is None."""

    topics: Mapping[str, TopicPace]
    source_records_per_s: float | None
    source_bytes_per_s: float | None
    capacity_bytes_per_s: float | None

    @property
    def catch_up_s(self) -> float | None:
        waiting = summed(topic.waiting_bytes for topic in self.topics.values())
        return catch_up_s(waiting, self.capacity_bytes_per_s, self.source_bytes_per_s)


def measure_pace(source: RawClient, target: RawClient, flow: Flow, topics: Sequence[str], ledger: Ledger) -> Pace:
    """The pace of these topics of the source."""
    partitions, retention = target.run(_look(source, target, flow, topics))
    by_topic: dict[str, list[PartitionPace]] = {topic: [] for topic in topics}
    for partition, pace in partitions.items():
        by_topic[partition.topic].append(pace)
    gained = summed(pace.gained_records for pace in partitions.values())
    return Pace(
        {
            topic: TopicPace(
                summed(pace.waiting_bytes for pace in found),
                earliest(pace.until_expiry_s(retention.get(topic, Retention())) for pace in found),
            )
            for topic, found in by_topic.items()
        },
        None if gained is None else gained / WINDOW_S,
        summed(pace.gained_bytes_per_s for pace in partitions.values()),
        copy_capacity(ledger),
    )


def copy_capacity(ledger: Ledger) -> float | None:
    """Bytes a second of the fastest recent run, from its first commit to its last; None where none was long enough."""

    def recent(files: list[LiveFile]) -> list[LiveFile]:
        chosen = files[-RECENT_FILES:]
        while chosen and ledger.row_count([file.link.name for file in chosen]) > RECENT_ROWS:
            chosen = chosen[1:]
        return chosen

    _, rows = ledger.read_some(recent, ["run", "copied_at_ms", "bytes"])
    return max(_rates(rows), default=None)


def _rates(rows: pa.Table) -> Iterable[float]:
    commits: dict[str, list[tuple[int, int]]] = {}
    for row in rows.group_by(["run", "copied_at_ms"]).aggregate([("bytes", "sum")]).to_pylist():
        commits.setdefault(row["run"], []).append((row["copied_at_ms"], row["bytes_sum"]))
    for found in commits.values():
        (first_ms, first_bytes), (last_ms, _) = min(found), max(found)
        seconds = (last_ms - first_ms) / 1000
        if seconds >= SHORTEST_S:
            yield (sum(size for _, size in found) - first_bytes) / seconds


async def _look(
    source: RawClient, target: RawClient, flow: Flow, topics: Sequence[str]
) -> tuple[dict[TopicPartition, PartitionPace], dict[str, Retention]]:
    view = await source.metadata(topics)
    partitions = [
        TopicPartition(topic.name, number) for topic in view.topics.values() for number in range(len(topic.partitions))
    ]
    waiting = await measure_partitions(source, target, flow, naming_of(flow), partitions)
    since = AtTime(int((time.time() - WINDOW_S) * 1000))
    firsts = (await list_offsets(source, view, partitions, since)).offsets
    starts = (await list_offsets(source, view, partitions, OffsetAt.LOG_START)).offsets
    ends = (await list_offsets(source, view, partitions, OffsetAt.LOG_END)).offsets
    sizes = await log_sizes(source, view)
    paces = {}
    for partition in partitions:
        if partition not in starts or partition not in ends:
            paces[partition] = PartitionPace()
            continue
        lag, end = waiting.get(partition, PartitionLag()), ends[partition]
        paces[partition] = PartitionPace(
            lag.records,
            lag.seconds,
            _record_bytes(sizes.get(partition), end - starts[partition]),
            _gained(firsts[partition], end) if partition in firsts else None,
        )
    settings = (await read_settings(source, topics, _RETENTION)).topics
    return paces, {topic: Retention.of(*_policy(found.effective)) for topic, found in settings.items()}


def _record_bytes(size: int | None, offsets: int) -> float | None:
    return size / offsets if size is not None and offsets > 0 else None


def _gained(first: int, end: int) -> int:
    """Offsets from the first record of the window to the end; -1 is Kafka's answer where there is none."""
    return max(0, end - first) if first >= 0 else 0


def _policy(settings: Mapping[str, str]) -> tuple[str, int, int]:
    policy, milliseconds, size = (settings.get(name) for name in _RETENTION)
    return policy or "", int(milliseconds or -1), int(size or -1)
