"""What a migration can show for itself, kept beside the ledger from its first phase on:

    <ledger>/_migrations/source=nyc/target=lon/
        <migration>.json               what was done when, phase by phase
        <migration>-topics.parquet     one row a topic of the source
        <migration>-groups.parquet     one row a group and partition: where it goes on at the cut-over
        <migration>-acls.parquet       one row a permission
        <migration>.html               all of it on a page that stands by itself

The JSON grows phase by phase, written by whichever machine takes them; the rest is made anew from it, the ledger and
the target, as long as those can be asked.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa  # noqa: TID253 - no DAG imports an operation at its top
import pyarrow.compute as pc  # noqa: TID253 - as above
from pyarrow import parquet as pq  # noqa: TID253 - as above

from twinlog.cluster.made_store import MadeStore
from twinlog.cluster.raw import RawClient
from twinlog.cluster.topic_settings import read_settings
from twinlog.intake.extensions import naming_of, topics_of
from twinlog.ledger.folder import Folder
from twinlog.ledger.schema import GAP_COLUMNS
from twinlog.ledger.store import Ledger
from twinlog.model.made import Made, made_topic
from twinlog.model.migration import Phase
from twinlog.model.selection import TopicSelection
from twinlog.model.takeover import TakeoverPlan
from twinlog.model.topology import Flow, Topology
from twinlog.model.twin_settings import TWIN_SETTINGS

TOPICS = pa.schema(
    [
        ("topic", pa.string()),
        ("twin", pa.string()),
        ("partitions", pa.int32()),
        ("records", pa.int64()),
        ("bytes", pa.int64()),
        *((name, pa.int64()) for name in GAP_COLUMNS.values()),
        ("settings", pa.string()),
        ("left_out", pa.string()),
    ]
)
GROUPS = pa.schema(
    [
        ("group", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("how", pa.string()),
        ("unread", pa.int64()),
        ("left_out", pa.string()),
    ]
)
ACLS = pa.schema(
    [
        (name, pa.string())
        for name in ("resource_type", "resource_name", "pattern", "principal", "host", "operation", "permission")
    ]
)


class Evidence:
    """The evidence of one migration."""

    def __init__(self, ledger: Ledger, migration_id: str) -> None:
        self.folder = Folder(ledger.beside("_migrations"), ledger.filesystem)
        self._id = migration_id

    def begin(self) -> None:
        """There is something to keep from here on."""
        if self._found() is None:
            self.write(self.read())

    def read(self) -> dict[str, Any]:
        """What is known so far."""
        return self._found() or {"migration": self._id, "phases": [], "notes": []}

    def _found(self) -> dict[str, Any] | None:
        try:
            said: dict[str, Any] = json.loads(self.folder.read(f"{self._id}.json"))
        except FileNotFoundError:
            return None
        return said

    def done(self, phase: Phase, said: str, **facts: Any) -> None:
        """A phase is done; `facts` stand by themselves, and the newest of each holds."""
        known = self.read()
        phases = [one for one in known["phases"] if one["phase"] != phase]
        phases.append({"phase": str(phase), "at_ms": int(time.time() * 1000), "said": said})
        self.write({**known, **facts, "phases": phases})

    def note(self, notes: Sequence[str]) -> None:
        """What people must know, each once."""
        known = self.read()
        self.write({**known, "notes": list(dict.fromkeys((*known["notes"], *notes)))})

    def write(self, said: Mapping[str, Any]) -> None:
        self.folder.publish(f"{self._id}.json", json.dumps(said, indent=1).encode())

    def table(self, name: str) -> pa.Table:
        """One of the report's files that was written before."""
        return pq.read_table(pa.BufferReader(self.folder.read(f"{self._id}{name}")))

    def publish(self, name: str, content: bytes | pa.Table) -> str:
        """One of the report's files; where it is."""
        file = f"{self._id}{name}"
        self.folder.publish(file, content if isinstance(content, bytes) else _encoded(content))
        return f"{self.folder.uri}/{file}"


def last_migration(ledger: Ledger) -> str | None:
    """The id of the newest migration that there is evidence of."""
    folder = Folder(ledger.beside("_migrations"), ledger.filesystem)
    names = sorted(file.name for file in folder.files() if file.name.endswith(".json"))
    return names[-1].removesuffix(".json") if names else None


def cleaned_up(ledger: Ledger) -> str | None:
    """The id of the newest migration, if its clean-up was at least begun. Where nothing of the flow is on the target
    any more, it came to its end."""
    known = last_migration(ledger)
    return known if known is not None and Evidence(ledger, known).read().get("cleaning_up") else None


def reason_to_stay_away(flow: Flow, ledger: Ledger) -> str | None:
    """Why a flow of which nothing is on the target is not begun anew there: a scheduler that has not heard of the end
    of its migration would write the old cluster's records among those of the applications that have moved."""
    migration = cleaned_up(ledger)
    if migration is None:
        return None
    return (
        f"{flow.name} was migrated and cleaned up (migration {migration}): take it out of the topology, or begin anew "
        "with `twinlog migrate`"
    )


def topic_table(topology: Topology, flow: Flow, ledger: Ledger, source: RawClient, target: RawClient) -> pa.Table:
    """Every topic of the source: what was moved of it, or why nothing was."""
    policy = naming_of(flow)
    named = {other.name: naming_of(other) for other in topology.flows.values() if other.naming_policy}
    selection = TopicSelection(topology, flow, named, topics_of(flow))
    view = source.run(source.metadata())
    left_out = {name: selection.left_out(name) for name in view.topics}
    moved = [name for name, reason in left_out.items() if reason is None]
    read = target.run(read_settings(target, [policy.target_name(name) for name in moved])).topics
    sums = _copied(ledger)
    rows = []
    for name, topic in sorted(view.topics.items()):
        reason, twin = left_out[name], policy.target_name(name)
        settings = read[twin].overrides if reason is None and twin in read else {}
        carried = {key: value for key, value in settings.items() if key not in TWIN_SETTINGS}
        rows.append(
            {
                "topic": name,
                "twin": twin if reason is None else None,
                "partitions": len(topic.partitions),
                "records": 0,
                "bytes": 0,
                **dict.fromkeys(GAP_COLUMNS.values(), 0),
                **(sums.get(name, {}) if reason is None else {}),
                "settings": json.dumps(dict(sorted(carried.items()))),
                "left_out": None if reason is None else reason.value,
            }
        )
    return pa.Table.from_pylist(rows, TOPICS)


def acl_table(flow: Flow, target: RawClient) -> pa.Table:
    """The permissions that were moved."""
    topic = made_topic(flow.source, flow.target)
    missing = target.run(target.metadata([topic])).topics[topic].is_missing
    made = Made() if missing else target.run(MadeStore(target, flow.source, flow.target).read())
    rows = [
        dict(zip(ACLS.names, (str(getattr(acl, name)) for name in ACLS.names), strict=True))
        for acl in sorted(made.acls)
    ]
    return pa.Table.from_pylist(rows, ACLS)


def group_table(plan: TakeoverPlan | None, not_moved: Sequence[Sequence[Any]] = ()) -> pa.Table:
    """Where each group goes on, by the plan of the cut-over, and which stay behind for what reason; `not_moved` are
    those of the plan that the target did not take: group, topic, partition and reason."""
    if plan is None:
        return GROUPS.empty_table()
    rows = [{name: getattr(row, name, None) for name in GROUPS.names} for row in plan.rows]
    behind = [(row.group, row.topic, row.partition, row.reason) for row in plan.left_out]
    rows += [
        {"group": group, "topic": topic, "partition": partition, "left_out": reason}
        for group, topic, partition, reason in (*behind, *not_moved)
    ]
    return pa.Table.from_pylist(rows, GROUPS)


def _copied(ledger: Ledger) -> dict[str, dict[str, int]]:
    """By topic of the source, what the ledger's rows add up to."""
    columns = ("count", "bytes", *GAP_COLUMNS.values())
    rows = ledger.read(("source_topic", *columns))
    names = rows.column("source_topic").cast(pa.string())
    rows = rows.set_column(0, "source_topic", names)
    sums = rows.group_by("source_topic", use_threads=False).aggregate([(column, "sum") for column in columns])
    return {
        row["source_topic"]: {
            "records": row["count_sum"],
            "bytes": row["bytes_sum"],
            **{column: row[f"{column}_sum"] for column in GAP_COLUMNS.values()},
        }
        for row in sums.to_pylist()
    }


def totals(topics: pa.Table) -> dict[str, int]:
    """Of the topics that were moved."""
    moved = topics.filter(pc.is_valid(topics.column("twin")))
    names = ("partitions", "records", "bytes", *GAP_COLUMNS.values())
    return {"topics": moved.num_rows, **{name: pc.sum(moved.column(name)).as_py() or 0 for name in names}}


def _encoded(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", store_schema=False)
    return bytes(sink.getvalue())
