"""The plans of repairs, and which records they have recovered, beside the ledger:

    <ledger>/_repairs/source=nyc/target=lon/<id>.json                  the plan, and what came of it
                                            <id>-before.json           what goes with twins that are swapped
                                            <id>-recovered.parquet     what was appended to topics of its own

A reconciliation counts what was recovered instead of calling it missing. Losing these files costs nothing but being
told of it again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa
from pyarrow import parquet as pq

from twinlog.errors import LedgerError
from twinlog.ledger.folder import Folder
from twinlog.ledger.store import Ledger
from twinlog.model.offsets import Span
from twinlog.model.repair import merged

_RECOVERED = pa.schema(
    [
        ("source_topic_id", pa.string()),
        ("partition", pa.int32()),
        ("source_start", pa.int64()),
        ("source_end", pa.int64()),
    ]
)
_PLAN, _BEFORE, _RECOVERED_SUFFIX = ".json", "-before.json", "-recovered.parquet"


class Place(NamedTuple):
    """One partition of one very topic of the source."""

    source_topic_id: UUID
    partition: int


class TwinsBefore(NamedTuple):
    """What goes with a twin when it is deleted, and is put back on the one that takes its place."""

    groups: list[dict[str, Any]]
    """A row a position (see `operations.recopy_groups`)."""
    settings: dict[str, dict[str, str]]
    """The overrides of each twin."""


class Repairs:
    """What is kept of the repairs of one flow."""

    def __init__(self, ledger: Ledger) -> None:
        self._folder = Folder(ledger.beside("_repairs"), ledger.filesystem)

    def keep(self, plan_id: str, said: Mapping[str, Any]) -> None:
        self._publish(f"{plan_id}{_PLAN}", json.dumps(said, indent=2).encode())

    def read(self, plan_id: str) -> dict[str, Any] | None:
        """The plan of that id with its result, if it has one; None where there is no such plan."""
        said: dict[str, Any] | None = self._json(f"{plan_id}{_PLAN}")
        return said

    def latest(self) -> dict[str, Any] | None:
        """The plan that was last begun; ids sort by time."""
        for name in sorted(self._names(), reverse=True):
            if name.endswith(_PLAN) and not name.endswith(_BEFORE):
                said: dict[str, Any] | None = self._json(name)
                if said is not None and "begun_at_ms" in said:
                    return said
        return None

    def keep_before(self, plan_id: str, before: TwinsBefore) -> None:
        self._publish(f"{plan_id}{_BEFORE}", json.dumps(before._asdict()).encode())

    def before(self, plan_id: str) -> TwinsBefore:
        """What was known of the twins of this plan right before they were deleted."""
        said = self._json(f"{plan_id}{_BEFORE}")
        return TwinsBefore([], {}) if said is None else TwinsBefore(**said)

    def note_recovered(self, plan_id: str, recovered: Mapping[Place, Iterable[Span]]) -> None:
        rows = [
            {
                "source_topic_id": str(place.source_topic_id),
                "partition": place.partition,
                "source_start": span.start,
                "source_end": span.end,
            }
            for place, spans in recovered.items()
            for span in merged(spans)
        ]
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(rows, _RECOVERED), sink, compression="zstd", store_schema=False)
        self._publish(f"{plan_id}{_RECOVERED_SUFFIX}", sink.getvalue())

    def recovered(self) -> dict[Place, list[Span]]:
        """Every source offset whose record is in a topic of its own on the target."""
        found: dict[Place, list[Span]] = {}
        for name in self._names():
            if not name.endswith(_RECOVERED_SUFFIX):
                continue
            try:
                rows = pq.read_table(pa.BufferReader(self._folder.read(name))).to_pylist()
            except (OSError, pa.ArrowInvalid) as failure:
                raise LedgerError(f"{self._folder.uri}/{name} can't be read: {failure}") from failure
            for row in rows:
                place = Place(UUID(row["source_topic_id"]), row["partition"])
                found.setdefault(place, []).append(Span(row["source_start"], row["source_end"]))
        return {place: list(merged(spans)) for place, spans in found.items()}

    def _names(self) -> list[str]:
        return [file.name for file in self._folder.files()]

    def _json(self, name: str) -> Any:
        try:
            return json.loads(self._folder.read(name))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as failure:
            raise LedgerError(f"{self._folder.uri}/{name} can't be read: {failure}") from failure

    def _publish(self, name: str, content: pa.Buffer | bytes) -> None:
        try:
            self._folder.publish(name, content)
        except OSError as failure:
            raise LedgerError(f"{self._folder.uri}/{name} could not be kept: {failure}") from failure
