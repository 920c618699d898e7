"""A reconciliation of a test's flow, without Spark, and its differences in short."""

from __future__ import annotations

from typing import NamedTuple

from support.mirroring import Twins
from twinlog.model.reconciliation import Kind
from twinlog.operations.reconcile import EVERYTHING_NEW, Executor, Reconciling, Scope, prove_here
from twinlog.operations.reconcile_result import Reconciliation

FULL = Scope(full=True)
DEEP = Scope(full=True, deep=True)


class Found(NamedTuple):
    """A difference of one topic, less its words."""

    kind: Kind
    partition: int | None
    source: int | None
    target: int | None
    count: int = 1


def reconcile(
    flow: Twins, scope: Scope = EVERYTHING_NEW, execute: Executor = prove_here, tasks: int = 2
) -> Reconciliation:
    return Reconciling(flow.topology, flow.flow, flow.ends(), flow.ledger).run(scope, execute, tasks=tasks)


def differences(result: Reconciliation, topic: str) -> list[Found]:
    return [
        Found(one.kind, one.partition, one.source_offset, one.target_offset, one.count)
        for one in result.differences
        if one.topic == topic
    ]
