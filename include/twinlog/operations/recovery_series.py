"""How drills and takeovers fared, kept as a series beside the ledger, where the target's side finds it:

    <ledger>/_recovery/source=nyc/target=lon/recovery-<milliseconds>.parquet       one row each, none is forgotten

A row's columns are those of SCHEMA. A null is what was not measured.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from enum import StrEnum

import pyarrow as pa  # noqa: TID253 - no DAG imports an operation at its top
from pyarrow import parquet as pq  # noqa: TID253 - as above

from twinlog.errors import LedgerError
from twinlog.ledger.folder import Folder
from twinlog.ledger.store import Ledger


class Event(StrEnum):
    """What was measured."""

    DRILL = "drill"
    FAILOVER = "failover"
    SWITCHOVER = "switchover"


@dataclass(frozen=True, slots=True)
class Recovery:
    """One event."""

    flow: str
    at_ms: int
    kind: str
    recovery_time_s: float | None
    """From the trigger until groups could read."""
    recovery_point_s: float | None
    """How old the oldest record was that the target did not have."""
    lost_records: int | None
    groups: int
    groups_ready: int
    records_checked: int
    """Records that consumers read and that were compared one by one; 0 where none were."""
    faults: int
    """Of them, and of those that should have been read: wrong, missing or doubled."""


SCHEMA = pa.schema(
    [
        ("flow", pa.string()),
        ("at_ms", pa.int64()),
        ("kind", pa.string()),
        ("recovery_time_s", pa.float64()),
        ("recovery_point_s", pa.float64()),
        ("lost_records", pa.int64()),
        ("groups", pa.int64()),
        ("groups_ready", pa.int64()),
        ("records_checked", pa.int64()),
        ("faults", pa.int64()),
    ]
)
_NAME = re.compile(r"recovery-(\d{15})\.parquet")


class RecoverySeries:
    """The events of one flow, oldest first."""

    def __init__(self, ledger: Ledger) -> None:
        self._folder = Folder(ledger.beside("_recovery"), ledger.filesystem)

    def add(self, event: Recovery) -> None:
        """Keep one more; the same event again replaces itself."""
        table = pa.table([[asdict(event)[name]] for name in SCHEMA.names], schema=SCHEMA)
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd", store_schema=False)
        self._folder.publish(f"recovery-{event.at_ms:015}.parquet", sink.getvalue())

    def last(self) -> Recovery | None:
        """The newest event that measured a recovery time; None before the first."""
        for name in reversed(self._names()):
            (event,) = self._read(name)
            if event.recovery_time_s is not None:
                return event
        return None

    def events(self) -> list[Recovery]:
        return [event for name in self._names() for event in self._read(name)]

    def _read(self, name: str) -> list[Recovery]:
        try:
            table = pq.ParquetFile(self._folder.file_path(name), filesystem=self._folder.filesystem).read()
            return [Recovery(**row) for row in table.cast(SCHEMA).to_pylist()]
        except (OSError, pa.ArrowInvalid) as failure:
            raise LedgerError(f"{self._folder.uri}: how {name} went can't be read: {failure}") from failure

    def _names(self) -> list[str]:
        return sorted(file.name for file in self._folder.files() if _NAME.fullmatch(file.name))
