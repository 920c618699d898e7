"""Readiness: for each group of a flow, can it fail over now, to which offsets, what would it lose and what is unread.

Kept as a Parquet table a pass, beside the ledger, where the target's side finds it when the source is gone:

    <ledger>/_readiness/source=nyc/target=lon/readiness-<milliseconds>.parquet       the last 100 of them

A row is a group on a partition, with the columns of SCHEMA. `unread` counts the copied records from the group's offset
to the end of what was copied, by the ledger; `lost_records` and `lost_seconds` are what the source has of the partition
beyond the mirror's position, counted in offsets, and how long the oldest of that has been waiting; a null of a row with
a target topic, and of its group, is not known. `source_end` is where the source's log ended then, if beyond that
position. `read_again` is 0 but where one name is mirrored both ways.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import pyarrow as pa  # noqa: TID253 - no DAG imports an operation at its top
from pyarrow import parquet as pq  # noqa: TID253 - as above

from twinlog.cluster.raw import RawClient
from twinlog.intake.extensions import naming_of
from twinlog.ledger.folder import Folder
from twinlog.ledger.store import Ledger
from twinlog.ledger.translate import Translator
from twinlog.model.checkpoints import OF_ANOTHER_FLOW
from twinlog.model.offsets import TopicPartition
from twinlog.model.topology import Flow
from twinlog.operations.lag import PartitionLag, measure_partitions
from twinlog.operations.standings import Standing, Standings

KEPT = 100
TRIED = 3
"""Tables, from the newest on, before it is the storage that fails and not a file."""

SCHEMA = pa.schema(
    [
        ("flow", pa.string()),
        ("at_ms", pa.int64()),
        ("group", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("source_offset", pa.int64()),
        ("target_topic", pa.string()),
        ("target_offset", pa.int64()),
        ("how", pa.string()),
        ("ready", pa.bool_()),
        ("reason", pa.string()),
        ("behind", pa.int64()),
        ("unread", pa.int64()),
        ("read_again", pa.int64()),
        ("lost_records", pa.int64()),
        ("lost_seconds", pa.float64()),
        ("source_end", pa.int64()),
    ]
)
_NAME = re.compile(r"readiness-(\d{15})\.parquet")


@dataclass(frozen=True, slots=True)
class PartitionReadiness:
    """One group on one partition of the source, as SCHEMA has it."""

    topic: str
    partition: int
    target_topic: str | None
    target_offset: int | None
    how: str | None
    ready: bool
    reason: str | None
    unread: int | None
    lost_records: int | None
    lost_seconds: float | None


_OF_A_PARTITION = tuple(column.name for column in fields(PartitionReadiness))


@dataclass(frozen=True)
class GroupReadiness:
    """One group, over all its partitions."""

    group: str
    ready: bool
    partitions: int
    unread: int
    lost_records: int | None
    lost_seconds: float | None
    reasons: tuple[str, ...]
    offsets: tuple[PartitionReadiness, ...] = ()
    """Where it goes on, partition by partition."""


@dataclass(frozen=True)
class Readiness:
    """All groups of a flow at one moment: a table of SCHEMA."""

    at_ms: int
    table: pa.Table

    @property
    def ready(self) -> int:
        return sum(group.ready for group in self.groups)

    @property
    def not_ready(self) -> int:
        return len(self.groups) - self.ready

    @cached_property
    def groups(self) -> list[GroupReadiness]:
        rows: dict[str, list[dict[str, Any]]] = {}
        for row in self.table.to_pylist():
            rows.setdefault(row["group"], []).append(row)
        return [_group(name, members) for name, members in sorted(rows.items())]


def readiness(flow: Flow, source: RawClient, target: RawClient, found: Standings, translator: Translator) -> Readiness:
    """The standings with what is unread and what would be lost, measured now."""
    policy = naming_of(flow)
    partitions = sorted({row.source for row in found.rows if row.source is not None and row.target is not None})
    lags = target.run(measure_partitions(source, target, flow, policy, partitions)) if partitions else {}
    return _tabulated(flow, found, unread_of(found.rows, translator), lags)


def _tabulated(
    flow: Flow,
    found: Standings,
    unread: Sequence[int | None],
    lags: Mapping[TopicPartition, PartitionLag],
) -> Readiness:
    at_ms = int(time.time() * 1000)
    rows = found.rows
    lost = [None if row.target is None else _lag(lags, row) for row in rows]
    columns: dict[str, Iterable[object]] = {
        "flow": [flow.name] * len(rows),
        "at_ms": [at_ms] * len(rows),
        "group": (row.group for row in rows),
        "topic": (None if row.source is None else row.source.topic for row in rows),
        "partition": (None if row.source is None else row.source.partition for row in rows),
        "source_offset": (None if row.committed is None else row.committed.offset for row in rows),
        "target_topic": (None if row.target is None else row.target.topic for row in rows),
        "target_offset": (row.offset for row in rows),
        "how": (row.how for row in rows),
        "ready": (row.ready for row in rows),
        "reason": (None if row.remark is None else str(row.remark) for row in rows),
        "behind": (row.behind for row in rows),
        "unread": unread,
        "read_again": (row.read_again for row in rows),
        "lost_records": (None if lag is None else lag.records for lag in lost),
        "lost_seconds": (None if lag is None else lag.seconds for lag in lost),
        "source_end": (None if lag is None else lag.end for lag in lost),
    }
    return Readiness(at_ms, pa.table([list(columns[name]) for name in SCHEMA.names], schema=SCHEMA))


def unread_of(rows: Sequence[Standing], translator: Translator) -> list[int | None]:
    """How many copied records lie at or after each row's offset on the target; None where it has none."""
    known = [(row.target, row.offset) for row in rows if row.target is not None and row.offset is not None]
    asked = pa.table(
        {
            "topic": pa.array([target.topic for target, _ in known], pa.string()),
            "partition": pa.array([target.partition for target, _ in known], pa.int32()),
            "offset": pa.array([offset for _, offset in known], pa.int64()),
        }
    )
    counts = iter(translator.unread(asked).tolist())
    return [next(counts) if row.target is not None and row.offset is not None else None for row in rows]


def _lag(lags: Mapping[TopicPartition, PartitionLag], row: Standing) -> PartitionLag:
    return lags.get(row.source, PartitionLag()) if row.source is not None else PartitionLag()


def _group(name: str, rows: list[dict[str, Any]]) -> GroupReadiness:
    def numbers(column: str) -> list[float]:
        return [float(str(row[column])) for row in rows if row[column] is not None]

    def known(column: str) -> bool:
        return all(row[column] is not None for row in rows if row["target_topic"] is not None)

    lost, seconds = numbers("lost_records"), numbers("lost_seconds")
    ours = [row for row in rows if row["reason"] not in OF_ANOTHER_FLOW]
    return GroupReadiness(
        name,
        bool(ours) and all(row["ready"] for row in ours),
        sum(1 for row in rows if row["topic"] is not None),
        int(sum(numbers("unread"))),
        int(sum(lost)) if lost and known("lost_records") else None,
        max(seconds, default=None) if known("lost_seconds") else None,
        tuple(sorted({str(row["reason"]) for row in rows if row["reason"] is not None})),
        tuple(
            PartitionReadiness(**{name: row[name] for name in _OF_A_PARTITION})
            for row in rows
            if row["topic"] is not None
        ),
    )


class ReadinessTables:
    """The tables of one flow, one a pass."""

    def __init__(self, ledger: Ledger) -> None:
        self._folder = Folder(ledger.readiness_uri, ledger.filesystem)

    def write(self, found: Readiness) -> None:
        """Keep one more, and forget the oldest."""
        sink = pa.BufferOutputStream()
        pq.write_table(found.table, sink, compression="zstd", store_schema=False)
        self._folder.publish(f"readiness-{found.at_ms:015}.parquet", sink.getvalue())
        for name in self._names()[:-KEPT]:
            self._folder.remove(name)

    def last_ms(self) -> int | None:
        """When the last pass was made; None before the first."""
        names = self._names()
        return _made_ms(names[-1]) if names else None

    def last(self, unreadable: list[str]) -> Readiness | None:
        """The newest table that can be read; None before the first. `unreadable` gets a sentence for each newer one: a
        takeover needs what is known of the groups, and one damaged file must not stand in its way."""
        found = self._read(unreadable)
        return None if found is None else Readiness(found[0], _of_today(found[1]).cast(SCHEMA))

    def last_groups(self, unreadable: list[str]) -> frozenset[str] | None:
        """The groups that this table is about; None before the first."""
        found = self._read(unreadable, ["group"])
        return None if found is None else frozenset(found[1].column("group").unique().to_pylist())

    def _read(self, unreadable: list[str], columns: Sequence[str] | None = None) -> tuple[int, pa.Table] | None:
        try:
            names = self._names()
        except OSError as failure:
            unreadable.append(f"{self._folder.uri}: how ready groups were can't be read: {failure}")
            return None
        for name in reversed(names[-TRIED:]):
            try:
                path = self._folder.file_path(name)
                return _made_ms(name), pq.ParquetFile(path, filesystem=self._folder.filesystem).read(columns)
            except (OSError, pa.ArrowInvalid) as failure:
                unreadable.append(f"{self._folder.uri}/{name}: how ready groups were can't be read: {failure}")
        return None

    def _names(self) -> list[str]:
        return sorted(file.name for file in self._folder.files() if _NAME.fullmatch(file.name))


def _of_today(table: pa.Table) -> pa.Table:
    """The table with the columns that were added since it was written, empty."""
    for name in SCHEMA.names[table.num_columns :]:
        table = table.append_column(name, pa.nulls(table.num_rows, SCHEMA.field(name).type))
    return table


def _made_ms(name: str) -> int:
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{name} is not a readiness table")
    return int(match[1])
