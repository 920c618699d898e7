"""The proof of a migration: a reconciliation of all that both logs hold, less what another mirror left behind.

Of a twin that was adopted, what lies before the part that is one to one was never called equal: it is told by its
number, and does not stand in the way of the cut-over.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa  # noqa: TID253 - no DAG imports an operation at its top
import pyarrow.compute as pc  # noqa: TID253 - as above

from twinlog.ledger.store import Ledger
from twinlog.model.offsets import TopicPartition
from twinlog.model.reconciliation import Difference, Kind
from twinlog.model.topology import Flow, Topology
from twinlog.operations.adopting import run_of
from twinlog.operations.reconcile import Reconciling, Scope, prove_here
from twinlog.operations.reconcile_evidence import Executor
from twinlog.operations.reconcile_result import Reconciliation
from twinlog.operations.run_scope import Ends

EVERYTHING = Scope(full=True)
NAMED_AT_MOST = 5
_LEFT = frozenset({Kind.FOREIGN, Kind.DOUBLED})


def prove(  # noqa: PLR0917 - a flow and everything that a proof of it needs, each once
    topology: Topology,
    flow: Flow,
    ends: Ends,
    ledger: Ledger,
    migration: str,
    execute: Executor = prove_here,
    *,
    tasks: int = 1,
    scope: Scope = EVERYTHING,
) -> Reconciliation:
    """Compare; what is known to be another mirror's is a note of the result, and no difference."""
    found = Reconciling(topology, flow, ends, ledger).run(scope, execute, tasks=tasks)
    begins = adopted_from(ledger, migration)
    left = [one for one in found.differences if _is_left(one, begins)]
    if not left:
        return found
    places = sorted({f"{one.topic}-{one.partition}" for one in left})
    named = ", ".join(places[:NAMED_AT_MOST]) + (" and others" if len(places) > NAMED_AT_MOST else "")
    note = (
        f"{flow.name}: {sum(one.count for one in left):,} records on {flow.target} that the adopted mirror left before "
        f"what is one to one were not compared: {named}"
    )
    rest = tuple(one for one in found.differences if one not in left)
    return replace(found, differences=rest, notes=(*found.notes, note))


def adopted_from(ledger: Ledger, migration: str) -> dict[TopicPartition, int]:
    """The first target offset that was adopted of each partition of the source."""
    rows = ledger.read(("run", "source_topic", "partition", "target_start"))
    rows = rows.filter(pc.equal(rows.column("run").cast(pa.string()), run_of(migration)))
    begins: dict[TopicPartition, int] = {}
    for row in rows.to_pylist():
        place = TopicPartition(row["source_topic"], row["partition"])
        begins[place] = min(begins.get(place, row["target_start"]), row["target_start"])
    return begins


def _is_left(one: Difference, begins: dict[TopicPartition, int]) -> bool:
    if one.kind not in _LEFT or one.topic is None or one.partition is None or one.target_offset is None:
        return False
    return one.target_offset + one.count <= begins.get(TopicPartition(one.topic, one.partition), 0)
