"""The report of a reconciliation, beside the ledger: two Parquet tables, and a page that stands by itself.

    report-<milliseconds>-differences.parquet    one row a difference
    report-<milliseconds>-ranges.parquet         one row a stretch that was looked at
    report-<milliseconds>.html                   the answer first, then the evidence

The last 100 of them are kept.
"""

from __future__ import annotations

import re
from dataclasses import fields, replace

import pyarrow as pa  # noqa: TID253 - no DAG imports an operation at its top
from pyarrow import parquet as pq  # noqa: TID253 - as above

from twinlog.errors import LedgerError
from twinlog.ledger.folder import Folder
from twinlog.model.reconciliation import Difference, Kind
from twinlog.model.topology import Flow, Topology
from twinlog.operations.reconcile_page import page
from twinlog.operations.reconcile_result import ProvenRange, Reconciliation

KEPT = 100

_DIFFERENCES = pa.schema(
    [
        ("flow", pa.string()),
        ("at_ms", pa.int64()),
        ("kind", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("source_offset", pa.int64()),
        ("target_offset", pa.int64()),
        ("count", pa.int64()),
        ("detail", pa.string()),
    ]
)
_NAME = re.compile(r"report-(\d{15})(-differences\.parquet|-ranges\.parquet|\.html)")


def write_report(folder: Folder, result: Reconciliation, topology: Topology, flow: Flow) -> Reconciliation:
    """Write the three files, forget the oldest, and answer where the page is."""
    stem = f"report-{result.at_ms:015}"
    head = {"flow": result.flow, "at_ms": result.at_ms}
    differences = pa.Table.from_pylist([{**head, **one.to_json()} for one in result.differences], _DIFFERENCES)
    columns = {column.name: [getattr(one, column.name) for one in result.proven] for column in fields(ProvenRange)}
    folder.publish(f"{stem}-differences.parquet", _encoded(differences))
    folder.publish(f"{stem}-ranges.parquet", _encoded(pa.table(columns)))
    folder.publish(f"{stem}.html", page(result, topology, flow).encode())
    names = sorted(file.name for file in folder.files() if _NAME.fullmatch(file.name))
    kept = set(sorted({name[: len(stem)] for name in names})[-KEPT:])
    for name in names:
        if name[: len(stem)] not in kept:
            folder.remove(name)
    return replace(result, report=f"{folder.uri}/{stem}.html")


def read_differences(folder: Folder, at_ms: int) -> list[Difference]:
    """What the report of that time lists."""
    name = f"report-{at_ms:015}-differences.parquet"
    try:
        rows = pq.read_table(pa.BufferReader(folder.read(name))).to_pylist()
    except (OSError, pa.ArrowInvalid) as failure:
        raise LedgerError(f"{folder.uri}/{name} can't be read: {failure}; run `twinlog reconcile` again") from failure
    names = [column.name for column in fields(Difference) if column.name != "kind"]
    return [Difference(Kind(row["kind"]), **{each: row[each] for each in names}) for row in rows]


def _encoded(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", store_schema=False)
    return sink.getvalue()
