"""A run that is to take place, whoever else runs the flow: it waits for the one that is under way.

Whatever else keeps it from running (the flow is paused, another site describes it otherwise) does not pass by waiting,
and is an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.copy_order import Executor
from twinlog.errors import FlowStateError
from twinlog.model.topology import Flow
from twinlog.operations.flow_gate import record_of
from twinlog.operations.mirror import Mirror
from twinlog.operations.mirror_result import MirrorResult
from twinlog.operations.run_scope import NO_LIMITS, Limits

HELD_BACK_S = 2.0
TRIES_WITHOUT_A_HOLDER = 3

Wait = Callable[[float], None]


def run_in_turn(  # noqa: PLR0917 - a run, and who is told and asked while it waits
    mirror: Mirror,
    flow: Flow,
    target: ClusterAccess,
    execute: Executor,
    tell: Callable[[str], None],
    wait: Wait,
    *,
    tasks: int,
    limits: Limits = NO_LIMITS,
) -> MirrorResult:
    """One run; `tell` takes a sentence for people once, and `wait` lets seconds pass."""
    told, in_vain = None, 0
    while True:
        ran = mirror.run(execute, tasks=tasks, limits=limits)
        if ran.skipped is None:
            return ran
        with target.raw() as client:
            record = client.run(record_of(flow, client))
        if record.lease is None or not record.lease.holds(int(time.time() * 1000)):
            # It may have been given back just now.
            in_vain += 1
            if in_vain == TRIES_WITHOUT_A_HOLDER:
                raise FlowStateError(ran.skipped)
            continue
        in_vain = 0
        if told != ran.skipped:
            tell(f"{ran.skipped}; waiting for it")
            told = ran.skipped
        wait(HELD_BACK_S)
