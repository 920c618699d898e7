"""The proof that a switchover asks for, by a reconciliation: no record differs, and the ledger translates rightly.

Settings, permissions and checkpoints that are behind lose no record, so they stand in nobody's way; they are told.
"""

from __future__ import annotations

from dataclasses import replace

from twinlog.model.reconciliation import Kind
from twinlog.operations.flow_reach import FlowReach
from twinlog.operations.reconcile import EVERYTHING_NEW, Reconciling, prove_here
from twinlog.operations.reconcile_evidence import Executor
from twinlog.operations.reconcile_result import Reconciliation
from twinlog.operations.switchover import EQUAL_WITHIN_S, Opposite, Proof, Prove, Switchover

_BESIDE = frozenset({Kind.SETTING, Kind.PARTITIONS, Kind.PERMISSION, Kind.GROUP})


def prove_with(reach: FlowReach, execute: Executor = prove_here, *, tasks: int = 1) -> Prove:
    """Compare what is new, and a share of the rest, when asked to."""

    def prove() -> Proof:
        found = Reconciling(reach.topology, reach.flow, reach.ends(), reach.ledger()).run(
            EVERYTHING_NEW, execute, tasks=tasks
        )
        return proof_of(found)

    return prove


def proof_of(found: Reconciliation) -> Proof:
    """What a reconciliation says to whoever wants to switch over."""
    records = replace(found, differences=tuple(one for one in found.differences if one.kind not in _BESIDE))
    beside = tuple(one.detail or str(one.kind) for one in found.differences if one.kind in _BESIDE)
    return Proof(not records.differences, records.sentence, beside)


def switchover_of(reach: FlowReach, *, within_s: float = EQUAL_WITHIN_S) -> Switchover:
    """The switchover of one flow of a topology."""
    other = reach.opposite()
    opposite = None if other is None else Opposite(other.flow, other.ends(), other.ledger())
    return Switchover(reach.topology, reach.flow, reach.ends(), reach.ledger(), opposite=opposite, within_s=within_s)
