"""Compares the two sides of a flow record by record, and the ledger with both.

What is demanded of a partition: its twin holds the same records in the same order; the ledger's rows of the pair, with
their gaps, tile the source's offsets from the first to the position without overlap or hole; each row's records are the
source's at its source offsets and the target's at its target offsets; and no record of the target is without a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow.compute as pc
from confluent_kafka import TopicPartition

from support.mirroring import Twins
from support.reading import Seen, numbers_of, read_with_offsets, reader
from support.waiting import await_condition
from twinlog.cluster.committed import fetch_positions
from twinlog.ledger.schema import GAP_COLUMNS
from twinlog.model.lanes import position_group
from twinlog.model.offsets import TopicPartition as Partition
from twinlog.model.positions import Position


def check_twins(flow: Twins, topic: str, first: Mapping[int, int] | None = None) -> int:
    """Both logs and the ledger of a flow that is at rest; how many records there are. `first` is where each
    partition's copying began, 0 where it is not said."""
    await_settled(flow.source_servers, topic)
    await_settled(flow.target_servers, flow.twin(topic))
    source = read_with_offsets(flow.source_servers, topic)
    target = read_with_offsets(flow.target_servers, flow.twin(topic))
    check_equal(source, target)
    rows = ledger_rows(flow, topic)
    positions = flow_positions(flow)
    for number, records in source.items():
        begin = (first or {}).get(number, 0)
        position = positions.get(Partition(flow.twin(topic), number))
        mine = [row for row in rows if row["partition"] == number]
        check_tiling(mine, begin, begin if position is None else position.offset)
        check_records(mine, records, target[number])
    return sum(map(len, target.values()))


def check_equal(source: Mapping[int, Mapping[int, Seen]], target: Mapping[int, Mapping[int, Seen]]) -> None:
    assert source.keys() == target.keys()
    for number, records in source.items():
        here, there = list(records.values()), list(target[number].values())
        at = next((place for place, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), None)
        assert at is None, f"partition {number}: record {at} is {here[at]} on the source and {there[at]} on the target"
        assert len(here) == len(there), f"partition {number}: {len(here)} records on the source, {len(there)} copied"


def check_tiling(rows: list[dict[str, Any]], begin: int, end: int) -> None:
    """The rows of one pair account for each offset of `[begin, end)` once."""
    at = begin
    for row in sorted(rows, key=lambda row: (_span_start(row), row["source_start"] + row["count"])):
        assert _span_start(row) == at, f"expected a row from source offset {at} on, found {row}"
        at = row["source_start"] + row["count"]
    assert at == end, f"the ledger's rows end at {at}, the position is {end}"


def check_records(rows: list[dict[str, Any]], source: Mapping[int, Seen], target: Mapping[int, Seen]) -> None:
    """Each row's records are where it says, and every record of the target has a row."""
    accounted: list[int] = []
    for row in rows:
        for step in range(row["count"]):
            here, there = row["source_start"] + step, row["target_start"] + step
            assert source[here] == target[there], f"source offset {here} is not target offset {there}: {row}"
            accounted.append(there)
    assert sorted(accounted) == sorted(target)


def ledger_rows(flow: Twins, topic: str) -> list[dict[str, Any]]:
    """The ledger's rows of a topic, of the current topics on either side only."""
    with flow.ends().source.raw() as source, flow.ends().target.raw() as target:
        source_id = source.run(source.metadata([topic])).topics[topic].topic_id
        target_id = target.run(target.metadata([flow.twin(topic)])).topics[flow.twin(topic)].topic_id
    rows = flow.ledger.read()
    for column, value in (("source_topic_id", source_id), ("target_topic_id", target_id)):
        rows = rows.filter(pc.equal(rows.column(column).cast("string"), str(value)))
    found: list[dict[str, Any]] = rows.to_pylist()
    return found


def flow_positions(flow: Twins) -> dict[Partition, Position]:
    with flow.ends().target.raw() as target:
        return target.run(fetch_positions(target, position_group(flow.flow.name)))


def await_settled(servers: str, topic: str) -> None:
    """Wait until no transaction is open on the topic: an ended one's markers may still be on their way."""
    await_condition(
        lambda: log_ends(servers, topic, "read_committed") == log_ends(servers, topic, "read_uncommitted"),
        f"the open transactions on {topic} to end",
    )


def log_ends(servers: str, topic: str, isolation: str = "read_uncommitted") -> dict[int, int]:
    """The high watermarks, or with `read_committed` the last stable offsets."""
    consumer = reader(servers, isolation)
    try:
        numbers = numbers_of(consumer, topic)
        return {
            number: consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=10)[1] for number in numbers
        }
    finally:
        consumer.close()


def _span_start(row: Mapping[str, Any]) -> int:
    start: int = row["source_start"] - sum(row[name] for name in GAP_COLUMNS.values())
    return start
