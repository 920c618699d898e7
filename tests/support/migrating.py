"""Migrations of a flow between real clusters, without Spark, and what MirrorMaker 2 would have left of one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from support.mirroring import Twins, create_topic, producer
from support.reading import read_messages
from twinlog.cluster.copy_order import carry_out_here
from twinlog.model.migration import Migration
from twinlog.model.naming import offset_syncs_topic
from twinlog.model.offsets import TopicPartition
from twinlog.operations.migrate import Asked, MigrateResult, Migrating
from twinlog.operations.migration_cut_over import CuttingOver
from twinlog.operations.migration_keeping import migration_of
from twinlog.operations.switchover import Switchover
from twinlog.wire.mirror_maker import OffsetSync


def migrating(flow: Twins, **how: Any) -> Migrating:
    return Migrating(flow.topology, flow.flow, flow.ends(), flow.ledger, **how)


def migrate(flow: Twins, **asked: Any) -> MigrateResult:
    """As far as it goes without anybody's approval."""
    return migrating(flow).run(Asked(**asked), carry_out_here, tasks=2)


def migration(flow: Twins) -> Migration:
    """As the target keeps it."""
    found = migration_of(flow.flow, flow.ends().target)
    assert found is not None
    return found


def stamped(servers: str, topic: str, values: Sequence[object], timestamp_ms: int, partition: int = 0) -> None:
    """One record a value, all of this time and with one key."""
    writing = producer(servers)
    for value in values:
        writing.produce(topic, str(value), "key", partition=partition, timestamp=timestamp_ms)
    assert writing.flush(30) == 0


def copy_as_mirror_maker(
    flow: Twins, topic: str, spans: Mapping[int, Sequence[tuple[int, int]]], *, most: int = 37
) -> dict[int, list[tuple[int, int]]]:
    """Write these spans of the source's offsets to its twin, in batches of another size, as MirrorMaker 2 would, with
    its offset syncs; a span that goes back writes records twice. Answers the pairs of offsets of each partition."""
    create_topic(flow.target_servers, flow.twin(topic), len(spans), {})
    records = {
        (message.partition(), message.offset()): message for message in read_messages(flow.source_servers, topic)
    }
    writing = producer(flow.target_servers, batch_num_messages=most, compression_type="zstd")
    pairs: dict[int, list[tuple[int, int]]] = {}
    for partition, parts in spans.items():
        for start, end in parts:
            found = (one for (number, offset), one in records.items() if number == partition and start <= offset < end)
            for message in found:

                def note(_: object, written: Any, source: int = message.offset(), number: int = partition) -> None:
                    pairs.setdefault(number, []).append((source, written.offset()))

                writing.produce(
                    flow.twin(topic),
                    message.value(),
                    message.key(),
                    partition=partition,
                    headers=message.headers(),
                    timestamp=message.timestamp()[1],
                    on_delivery=note,
                )
    assert writing.flush(30) == 0
    leave_offset_syncs(flow, topic, {number: found[len(found) // 2] for number, found in pairs.items()})
    return pairs


def leave_offset_syncs(flow: Twins, topic: str, pairs: Mapping[int, tuple[int, int]]) -> None:
    """What MirrorMaker 2 noted of each partition."""
    notes = offset_syncs_topic(flow.flow)
    writing = producer(flow.source_servers)
    for partition, (source, target) in pairs.items():
        sync = OffsetSync(TopicPartition(topic, partition), source, target)
        writing.produce(notes, sync.value(), sync.key(), partition=0)
    assert writing.flush(30) == 0


def cutting_over(flow: Twins, within_s: float = 60.0) -> CuttingOver:
    switchover = Switchover(flow.topology, flow.flow, flow.ends(), flow.ledger, within_s=within_s)
    return CuttingOver(flow.topology, flow.flow, flow.ends(), flow.ledger, migrating(flow).course, switchover)


def cut_over(flow: Twins, *, within_s: float = 60.0, **how: Any) -> MigrateResult:
    """By a plan that somebody has approved."""
    cutting = cutting_over(flow, within_s)
    plan = cutting.plan()
    assert plan is not None
    return cutting.carry_out(plan, carry_out_here, approved_by="somebody", tasks=2, **how)
