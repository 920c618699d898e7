"""The plans of failbacks and the records that were stranded, beside the ledger:

    <ledger>/_failbacks/source=nyc/target=lon/<id>.json              the plan, and what came of it
    <ledger>/_stranded/source=nyc/target=lon/<id>-<part>.parquet     the stranded records, as readers see them

Neither is ever removed by Twinlog: the second may be the only copy of records that somebody still wants.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet as pq

from twinlog.errors import LedgerError
from twinlog.ledger.folder import Folder
from twinlog.ledger.store import Ledger
from twinlog.model.offsets import TopicPartition

_HEADER = pa.struct([("key", pa.binary()), ("value", pa.binary())])
STRANDED_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(_HEADER)),
    ]
)
_PLACES = pa.schema([STRANDED_SCHEMA.field(name) for name in ("topic", "partition", "offset")])


class StrandedRecord(NamedTuple):
    """One record that never crossed, as readers of the source see it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[bytes, bytes | None]]


class Failbacks:
    """The plans and the stranded records of one flow."""

    def __init__(self, ledger: Ledger) -> None:
        self._plans = Folder(ledger.beside("_failbacks"), ledger.filesystem)
        self._stranded = Folder(ledger.beside("_stranded"), ledger.filesystem)

    def keep(self, plan_id: str, said: Mapping[str, Any]) -> None:
        try:
            self._plans.publish(f"{plan_id}.json", json.dumps(said, indent=2).encode())
        except OSError as failure:
            raise LedgerError(f"{self._plans.uri}: the plan {plan_id} could not be kept: {failure}") from failure

    def read(self, plan_id: str) -> dict[str, Any] | None:
        """What was kept under that id; None where nothing was."""
        try:
            said: dict[str, Any] = json.loads(self._plans.read(f"{plan_id}.json"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as failure:
            raise LedgerError(f"{self._plans.uri}/{plan_id}.json can't be read: {failure}") from failure
        return said

    def export(self, plan_id: str, part: int, records: Sequence[StrandedRecord]) -> None:
        """Keep some of a failback's stranded records; the same part again replaces itself."""
        columns = zip(*records, strict=True)
        table = pa.table(
            [_column(name, values) for name, values in zip(STRANDED_SCHEMA.names, columns, strict=True)],
            schema=STRANDED_SCHEMA,
        )
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd", store_schema=False)
        try:
            self._stranded.publish(f"{plan_id}-{part:05}.parquet", sink.getvalue())
        except OSError as failure:
            raise LedgerError(f"{self._stranded.uri}: stranded records could not be kept: {failure}") from failure

    def exported(self, plan_id: str) -> pa.Table:
        """All that was kept of one failback, in the order of topic, partition and offset."""
        whole = self._read(plan_id, STRANDED_SCHEMA)
        return whole.sort_by([("topic", "ascending"), ("partition", "ascending"), ("offset", "ascending")])

    def exported_ends(self, plan_id: str) -> dict[TopicPartition, int]:
        """The partitions of which something was kept, each with the offset behind the last that was."""
        places = self._read(plan_id, _PLACES).group_by(["topic", "partition"]).aggregate([("offset", "max")])
        return {TopicPartition(row["topic"], row["partition"]): row["offset_max"] + 1 for row in places.to_pylist()}

    def exported_records(self, plan_id: str) -> int:
        return len(self._read(plan_id, _PLACES))

    def place(self, plan_id: str) -> str:
        """Where people find the stranded records."""
        return f"{self._stranded.uri}/{plan_id}-*.parquet"

    def _read(self, plan_id: str, schema: pa.Schema) -> pa.Table:
        try:
            tables = [
                pq.ParquetFile(self._stranded.file_path(name), filesystem=self._stranded.filesystem).read(schema.names)
                for name in self._names(plan_id)
            ]
        except (OSError, pa.ArrowInvalid) as failure:
            raise LedgerError(f"{self._stranded.uri}: stranded records can't be read: {failure}") from failure
        return pa.concat_tables([schema.empty_table(), *(table.cast(schema) for table in tables)])

    def _names(self, plan_id: str) -> Iterator[str]:
        names = sorted(file.name for file in self._stranded.files())
        return (name for name in names if name.startswith(f"{plan_id}-") and name.endswith(".parquet"))


def _column(name: str, values: Sequence[Any]) -> pa.Array:
    field = STRANDED_SCHEMA.field(name)
    if name == "headers":
        values = [[{"key": key, "value": value} for key, value in headers] for headers in values]
    return pa.array(values, field.type)
