"""Holds what a drill's consumers read against the ledger, and against the source where that can be reached.

    ledger   source 10..14 -> target 40..44,  source 16..17 -> target 46..47        resumed at 41
    read     41 42 43 44 46 47                                                      as it should be
             42 missing: a fault      45 read: a fault, nothing was copied there

Every offset that the ledger has from the resumed one up to the last that was read must have been read, once and in
order; whatever else was read was put there by somebody else. A group that read to the end must have read all that the
ledger has. Where the source answers, each record is compared with its own: key, value, headers and time stamp.

What was written on the target while that led, and went home, is no fault: the ledger of the way home has it. A topic
that is mirrored both ways under one name holds records of the target's own at any time, and none is called foreign.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

import pyarrow as pa  # noqa: TID253 - no DAG imports an operation at its top
import pyarrow.compute as pc  # noqa: TID253 - as above

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.raw import RawClient
from twinlog.cluster.resuming import ReadRecord, Resumed
from twinlog.cluster.span_reader import SpanReader
from twinlog.errors import ClusterError
from twinlog.intake.extensions import naming_of
from twinlog.ledger.store import Ledger
from twinlog.model.checkpoints import DRILL
from twinlog.model.offsets import Span, TopicPartition
from twinlog.model.topology import Flow, Topology
from twinlog.operations.directions import comes_back, with_way_home
from twinlog.operations.flow_gate import record_of

SOURCE_ANSWERS_WITHIN_S = 10.0
_COLUMNS = ("target_topic_id", "source_topic_id", "partition", "source_start", "target_start", "count")


@dataclass(frozen=True, slots=True)
class Fault:
    """One record that is not as it should be: `what` is missing, foreign, out of order, altered, or not resumed."""

    group: str
    topic: str
    partition: int
    offset: int
    what: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Checked:
    """All that was held against anything."""

    faults: tuple[Fault, ...] = ()
    records: int = 0
    compared: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Row:
    source_start: int
    target_start: int
    count: int


Mapped = Mapping[TopicPartition, Sequence[_Row]]


def check(  # noqa: PLR0917 - one flow, how it is reached, and what was read
    topology: Topology,
    flow: Flow,
    source: ClusterAccess,
    target: ClusterAccess,
    ledger: Ledger,
    resumed: Sequence[Resumed],
    records: int,
) -> Checked:
    """`records` is how many of a partition a consumer read at most."""
    partitions = {partition for one in resumed for partition in one.starts}
    with target.raw() as there:
        mapped = _mapped(there, ledger, partitions)
        own = _Own.of(there, topology, flow, partitions)
    faults = [fault for one in resumed for fault in _against_ledger(one, mapped, own, records)]
    read = {(record.partition, record.offset): record for one in resumed for record in one.records}
    compared = 0
    altered: set[tuple[TopicPartition, int]] = set()
    notes: tuple[str, ...] = ()
    try:
        with source.raw(SOURCE_ANSWERS_WITHIN_S) as here:
            compared, altered = _against_source(here, flow, mapped, read)
    except ClusterError as gone:
        notes = (f"{gone}; what was read was held against the ledger alone",)
    for one in resumed:
        faults += [
            _fault(one, record.partition, record.offset, "altered")
            for record in one.records
            if (record.partition, record.offset) in altered
        ]
    return Checked(tuple(faults), sum(len(one.records) for one in resumed), compared, notes)


@dataclass(frozen=True)
class _Own:
    """What may be on the target without having been mirrored in."""

    shared: frozenset[str] = frozenset()
    """Topics that are mirrored both ways under one name."""
    went_home: Mapping[TopicPartition, Sequence[Span]] = field(default_factory=dict)

    @classmethod
    def of(cls, target: RawClient, topology: Topology, flow: Flow, partitions: set[TopicPartition]) -> _Own:
        policy, returns = naming_of(flow), comes_back(topology, flow)
        names = {partition.topic for partition in partitions}
        shared = frozenset(twin for twin in names if (name := policy.source_name(twin)) is not None and returns(name))
        if not partitions or not target.run(record_of(flow, target)).came_home:
            return cls(shared)
        _, home = with_way_home(topology, flow)
        rows = _rows(target, Ledger(topology.ledger_for(home), home.source, home.target), partitions, "source_topic_id")
        spans: dict[TopicPartition, list[Span]] = defaultdict(list)
        for place, row in rows:
            spans[place].append(Span(row["source_start"], row["source_start"] + row["count"]))
        return cls(shared, spans)

    def holds(self, partition: TopicPartition, offset: int) -> bool:
        return partition.topic in self.shared or any(
            span.start <= offset < span.end for span in self.went_home.get(partition, ())
        )


def _against_ledger(one: Resumed, mapped: Mapped, own: _Own, records: int) -> Iterator[Fault]:
    read: dict[TopicPartition, list[int]] = defaultdict(list)
    for record in one.records:
        read[record.partition].append(record.offset)
    for partition, start in one.starts.items():
        if one.problem is not None and not read[partition] and partition not in one.ended:
            yield _fault(one, partition, start, "not resumed")
            continue
        yield from _of_partition(one, partition, start, read[partition], mapped.get(partition, ()), own, records)


def _of_partition(  # noqa: PLR0917 - one partition of one group, and what is known of it
    one: Resumed,
    partition: TopicPartition,
    start: int,
    read: Sequence[int],
    rows: Sequence[_Row],
    own: _Own,
    records: int,
) -> Iterator[Fault]:
    if any(later <= earlier for earlier, later in pairwise(read)):
        yield _fault(one, partition, read[0], "out of order")
    # Who was not stopped by the number of records has come to the end of what was copied when the ledger was read.
    last = max(read, default=start - 1)
    end = last if len(read) >= records or partition not in one.ended else None
    expected = set(_copied(rows, start, end, records))
    for offset in sorted(expected.difference(read)):
        yield _fault(one, partition, offset, "missing")
    known = set(_copied(rows, start, last, records)) if read else set()
    # What was copied after the ledger was brought up to date is read too, and no fault.
    proven = max((row.target_start + row.count for row in rows), default=start)
    for offset in read:
        if offset not in known and offset < proven and not own.holds(partition, offset):
            yield _fault(one, partition, offset, "foreign")


def _copied(rows: Sequence[_Row], start: int, end: int | None, at_most: int) -> Iterator[int]:
    """The target offsets that hold copies, from `start` up to and with `end`."""
    found = 0
    for row in rows:
        for offset in range(max(row.target_start, start), row.target_start + row.count):
            if end is not None and offset > end:
                return
            if end is None and found >= at_most:
                return
            yield offset
            found += 1


def _against_source(
    source: RawClient, flow: Flow, mapped: Mapped, read: Mapping[tuple[TopicPartition, int], ReadRecord]
) -> tuple[int, set[tuple[TopicPartition, int]]]:
    """How many records were compared, and those that differ; what the source no longer has is not compared."""
    policy = naming_of(flow)
    compared = 0
    altered: set[tuple[TopicPartition, int]] = set()
    offsets: dict[TopicPartition, list[int]] = defaultdict(list)
    for partition, offset in read:
        offsets[partition].append(offset)
    for twin, places in offsets.items():
        name = policy.source_name(twin.topic)
        if name is None:
            continue
        home = TopicPartition(name, twin.partition)
        origin = {_origin(mapped.get(twin, ()), place): place for place in places}
        wanted = sorted(offset for offset in origin if offset is not None)
        for span in _spans(wanted):
            for offset, content in _read(source, home, span):
                place = origin.get(offset)
                if place is not None:
                    compared += 1
                    if content != _content(read[twin, place]):
                        altered.add((twin, place))
    return compared, altered


def _origin(rows: Sequence[_Row], offset: int) -> int | None:
    for row in rows:
        if row.target_start <= offset < row.target_start + row.count:
            return row.source_start + offset - row.target_start
    return None


def _spans(offsets: Sequence[int]) -> Iterator[Span]:
    """As few as they can be without reading what nobody asked for."""
    start = None
    for before, offset in zip([None, *offsets], offsets, strict=False):
        if before is not None and offset > before + 1:
            yield Span(start if start is not None else before, before + 1)
            start = offset
        start = offset if start is None else start
    if start is not None:
        yield Span(start, offsets[-1] + 1)


def _read(source: RawClient, partition: TopicPartition, span: Span) -> Iterator[tuple[int, tuple[Any, ...]]]:
    reader, at = SpanReader(source, partition, span.end), span.start
    while at < span.end:
        records, at = source.run(reader.records(at))
        for record in records:
            headers = tuple((header.key.decode(errors="replace"), header.value) for header in record.headers)
            yield record.offset, (record.key, record.value, headers, record.timestamp_ms)


def _content(record: ReadRecord) -> tuple[Any, ...]:
    return record.key, record.value, record.headers, record.timestamp_ms


def _mapped(target: RawClient, ledger: Ledger, partitions: set[TopicPartition]) -> Mapped:
    """The ledger's rows with records, of the topics as they are now, in the target's order."""
    found: dict[TopicPartition, list[_Row]] = defaultdict(list)
    for place, row in _rows(target, ledger, partitions, "target_topic_id"):
        found[place].append(_Row(row["source_start"], row["target_start"], row["count"]))
    for members in found.values():
        members.sort(key=lambda one: one.target_start)
    return found


def _rows(
    target: RawClient, ledger: Ledger, partitions: set[TopicPartition], id_column: str
) -> Iterator[tuple[TopicPartition, dict[str, Any]]]:
    """The rows with records of these partitions of the target, which the column names by their topic's id."""
    if not partitions:
        return
    view = target.run(target.metadata({partition.topic for partition in partitions})).topics
    ids = {str(view[partition.topic].topic_id): partition.topic for partition in partitions}
    rows = ledger.read(_COLUMNS, lambda bounds: bounds.may_hold(id_column, sorted(ids)))
    kept = rows.filter(
        pc.and_(
            pc.is_in(rows.column(id_column).cast(pa.string()), pa.array(sorted(ids))),
            pc.greater(rows.column("count"), 0),
        )
    )
    for row in kept.to_pylist():
        place = TopicPartition(ids[row[id_column]], row["partition"])
        if place in partitions:
            yield place, row


def _fault(one: Resumed, partition: TopicPartition, offset: int, what: str) -> Fault:
    return Fault(one.group.removesuffix(DRILL), partition.topic, partition.partition, offset, what)
