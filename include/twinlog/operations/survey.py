"""Both clusters as a flow finds them, laid out for planning: one column a fact, one place a partition.

A constant number of requests a broker, whatever the number of partitions. Positions are read first: logs only grow, so
an end that lies below a position was cut, and not merely looked at too early. What keeps a partition from being
planned at all (no target topic, no leader) is a finding beside the columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from twinlog.cluster.committed import fetch_positions
from twinlog.cluster.inventory import (
    epoch_ends,
    log_sizes,
    max_batch_bytes,
    open_transactions,
    settled_metadata,
    settled_offsets,
    transactional_ids,
)
from twinlog.cluster.log_offsets import OffsetAt
from twinlog.cluster.metadata import ClusterMetadata, Topic
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import not_allowed
from twinlog.model.findings import Finding, FindingKind
from twinlog.model.lanes import position_group
from twinlog.model.naming import NamingPolicy
from twinlog.model.offsets import PartitionPair, TopicPartition
from twinlog.model.plan import Partitions
from twinlog.model.positions import NO_LEADER_EPOCH, Position
from twinlog.model.topology import Flow

UNKNOWN_RECORD_BYTES = 1_000.0

_NOT_ALLOWED = "TopicAuthorizationFailedError"


@dataclass(frozen=True)
class Survey:
    """What a run is planned from."""

    partitions: Partitions
    log_ends: dict[TopicPartition, int]
    """The source's high watermarks: beyond the last stable offset lies what open transactions hold back."""
    max_batch_bytes: dict[str, int]
    findings: tuple[Finding, ...]
    other_twins: frozenset[str] = frozenset()
    """Topics of the target beside the twins looked at that the flow has positions on."""


async def survey(
    source: RawClient,
    target: RawClient,
    flow: Flow,
    policy: NamingPolicy,
    topics: Iterable[str],
    *,
    in_step: bool = True,
) -> Survey:
    """Look at the source's `topics` and their twins, which are waited for for some seconds where they are `in_step`:
    all of them were made by now."""
    wanted = sorted(topics)
    source_view = await source.metadata(wanted)
    twins = [policy.target_name(topic) for topic in wanted]
    target_view = await (settled_metadata(target, twins) if in_step else target.metadata(twins))
    findings: list[Finding] = []
    pairs = list(_pairs(wanted, policy, _Side(source, source_view), _Side(target, target_view), findings))
    sources = [pair.source for pair in pairs]
    targets = [pair.target for pair in pairs]
    positions = await fetch_positions(target, position_group(flow.name), stable=False)
    starts = await settled_offsets(source, source_view, sources, OffsetAt.LOG_START)
    stable = await settled_offsets(source, source_view, sources, OffsetAt.LAST_STABLE)
    ends = await settled_offsets(source, source_view, sources, OffsetAt.LOG_END)
    target_ends = await settled_offsets(target, target_view, targets, OffsetAt.LOG_END)
    findings += _not_listed(source, {**ends.failed, **stable.failed, **starts.failed})
    findings += _not_listed(target, target_ends.failed)
    known = [
        pair
        for pair in pairs
        if pair.source in starts.offsets
        and pair.source in stable.offsets
        and pair.source in ends.offsets
        and pair.target in target_ends.offsets
    ]
    cut = await _truncated(source, source_view, known, positions)
    findings += await _held_back(source, source_view, known, stable.offsets, ends.offsets)
    sizes = await log_sizes(source, source_view)
    columns = Partitions(
        pairs=known,
        positions=[positions.get(pair.target) for pair in known],
        log_starts=[starts.offsets[pair.source] for pair in known],
        last_stable=[
            min(stable.offsets[pair.source], cut.get(pair.source, stable.offsets[pair.source])) for pair in known
        ],
        target_ends=[target_ends.offsets[pair.target] for pair in known],
        record_bytes=[
            _record_bytes(sizes.get(pair.source), ends.offsets[pair.source] - starts.offsets[pair.source])
            for pair in known
        ],
    )
    limits = await max_batch_bytes(target, {pair.target_topic for pair in known})
    others = frozenset(partition.topic for partition in positions).difference(twins)
    return Survey(columns, dict(ends.offsets), limits, tuple(findings), others)


@dataclass(frozen=True)
class _Side:
    """A cluster and what it says of the topics that are asked for."""

    client: RawClient
    view: ClusterMetadata


def _pairs(
    topics: list[str], policy: NamingPolicy, source: _Side, target: _Side, findings: list[Finding]
) -> Iterator[PartitionPair]:
    for name in topics:
        here, there = source.view.topics.get(name), target.view.topics.get(policy.target_name(name))
        if here is None or here.topic_id is None or here.error is not None:
            findings.append(_unusable(source.client, TopicPartition(name, 0), f"topic {name}", _why(here)))
            continue
        if there is not None and there.error is not None and not there.is_missing:
            findings.append(_unusable(target.client, TopicPartition(name, 0), f"topic {there.name}", there.error))
            continue
        count = 0 if there is None or there.error is not None else len(there.partitions)
        if there is not None and there.topic_id is not None:
            for number in range(min(count, len(here.partitions))):
                yield PartitionPair(name, here.topic_id, there.name, there.topic_id, number)
        if count < len(here.partitions):
            wanted = policy.target_name(name)
            findings.append(
                Finding(
                    FindingKind.TARGET_MISSING,
                    TopicPartition(name, count),
                    0,
                    f"the target's topic {wanted} has {count} of the {len(here.partitions)} partitions that {name} "
                    f"has on the source, so {len(here.partitions) - count} are not copied; run `twinlog sync`",
                )
            )


def _why(topic: Topic | None) -> str:
    if topic is None:
        return "it is not there"
    return topic.error or "its brokers give topics no ids; Kafka 2.8 and later do"


async def _truncated(
    source: RawClient,
    view: ClusterMetadata,
    pairs: list[PartitionPair],
    positions: dict[TopicPartition, Position],
) -> dict[TopicPartition, int]:
    """Where the source's log was cut below the position, by what its leaders say of the position's epoch."""
    epochs = {
        pair.source: position.leader_epoch
        for pair in pairs
        if (position := positions.get(pair.target)) is not None
        and position.leader_epoch != NO_LEADER_EPOCH
        and position.source_topic_id == pair.source_topic_id
    }
    if not epochs:
        return {}
    offsets = {pair.source: positions[pair.target].offset for pair in pairs if pair.source in epochs}
    return {
        # A leader that never heard of the epoch does not have the record before the position.
        partition: min(end.end_offset, offsets[partition] - 1)
        for partition, end in (await epoch_ends(source, view, epochs)).items()
        if end.end_offset < offsets[partition] or end.leader_epoch < epochs[partition]
    }


async def _held_back(
    source: RawClient,
    view: ClusterMetadata,
    pairs: list[PartitionPair],
    stable: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> list[Finding]:
    """A finding for each partition whose end an open transaction hides, with the producer that left it open."""
    held = [pair.source for pair in pairs if stable[pair.source] < ends[pair.source]]
    if not held:
        return []
    found = await open_transactions(source, view, held)
    names = await transactional_ids(source, view, sorted({one.producer_id for one in found.values()})) if found else {}
    return [
        Finding(
            FindingKind.HELD_BACK,
            partition,
            one.start_offset,
            f"cluster {source.alias}: {partition}: producer {one.producer_id}"
            f"{_called(names.get(one.producer_id))} has had a transaction open since offset {one.start_offset}; what "
            "follows can't be copied until it ends",
        )
        for partition, one in found.items()
    ]


def _called(transactional_id: str | None) -> str:
    return "" if transactional_id is None else f" (transactional id {transactional_id})"


def _not_listed(client: RawClient, failed: Mapping[TopicPartition, str]) -> list[Finding]:
    return [
        _unusable(client, partition, str(partition) if error != _NOT_ALLOWED else f"topic {partition.topic}", error)
        for partition, error in failed.items()
    ]


def _unusable(client: RawClient, partition: TopicPartition, what: str, error: str) -> Finding:
    """`what` of a cluster can't be looked at; `partition` is the source's."""
    if error == _NOT_ALLOWED:
        said = not_allowed(client.alias, client.principal, "DESCRIBE", what, "it is not copied")
        return Finding(FindingKind.NOT_ALLOWED, partition, 0, str(said))
    return Finding(FindingKind.REFUSED, partition, 0, f"cluster {client.alias}: {what} can't be looked at: {error}")


def _record_bytes(size: int | None, offsets: int) -> float:
    if not size or offsets <= 0:
        return UNKNOWN_RECORD_BYTES
    return size / offsets
