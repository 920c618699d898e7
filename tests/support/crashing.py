"""A run of a flow in a process of its own that is killed, or stopped, at a chosen step.

The steps are hit by wrapping methods of the copier in that process only: twinlog itself knows nothing of this.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from support.migrating import cut_over, migrate
from support.mirroring import Twins
from support.waiting import await_condition
from twinlog.cluster import fencing
from twinlog.cluster.copy_order import carry_out_here
from twinlog.cluster.transaction import TransactionalWriter
from twinlog.ledger.folder import Folder
from twinlog.ledger.store import Ledger
from twinlog.operations import lease
from twinlog.operations.mirror import Mirror
from twinlog.operations.takeover_groups import GroupMoving

_SENT_S = 0.003
"""Long enough for a request to leave the process, too short for most answers."""


class Step(StrEnum):
    """Where a run is struck."""

    BEFORE_PRODUCE = "before produce"
    DURING_PRODUCE = "during produce"
    AFTER_PRODUCE = "after produce"
    BEFORE_JOURNAL = "before the journal"
    BEFORE_POSITIONS = "before the positions"
    BEFORE_COMMIT = "before the commit"
    COMMIT_SENT = "commit sent"
    AFTER_COMMIT = "after the commit"
    BEFORE_LEDGER = "before the ledger"
    DURING_LEDGER = "during the ledger"
    BEFORE_RELEASE = "before the lease is given back"
    BEFORE_FENCING = "before the lanes are fenced"
    BEFORE_GROUPS = "before the groups move"


class Work(StrEnum):
    """What the process does."""

    MIRROR = "mirror"
    MIGRATE = "migrate"
    CUT_OVER = "cut over"


ONCE = frozenset({Step.BEFORE_LEDGER, Step.DURING_LEDGER, Step.BEFORE_RELEASE, Step.BEFORE_FENCING, Step.BEFORE_GROUPS})
"""Steps that a run comes to only once."""


@dataclass(frozen=True)
class Job:
    """One run, and when to send which signal to itself: at the `nth` time that it comes to `step`."""

    flow: Twins
    run: str
    step: Step | None = None
    nth: int = 1
    signal: int = signal.SIGKILL
    lease_s: float = lease.LEASE_S
    work: Work = Work.MIRROR


class ChildRun:
    """The process of a job."""

    def __init__(self, job: Job) -> None:
        root = Path(__file__).parents[2]
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from support.crashing import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": f"{root / 'include'}{os.pathsep}{root / 'tests'}"},
        )
        assert self._process.stdin is not None
        self._process.stdin.write(pickle.dumps(job))
        self._process.stdin.close()
        self._process.stdin = None

    def __enter__(self) -> ChildRun:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def await_killed(self, timeout_s: float = 60.0) -> None:
        """Wait until the process has been killed by itself."""
        assert self.was_killed(timeout_s), "the run ended before it came to where it was to be killed"

    def was_killed(self, timeout_s: float = 60.0) -> bool:
        """Whether the process, which is waited for, was killed by itself; the run may have had nothing to do there."""
        _, errors = self._process.communicate(timeout=timeout_s)
        ended = self._process.returncode
        assert ended in (-signal.SIGKILL, 0), f"ended with {ended}: {errors.decode()}"
        return ended != 0

    def await_stopped(self, timeout_s: float = 60.0) -> None:
        """Wait until the process has stopped itself; it can be continued."""
        stat = Path(f"/proc/{self._process.pid}/stat")
        await_condition(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "the run to stop", timeout_s)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def result(self, timeout_s: float = 60.0) -> dict[str, Any]:
        """What the run answered, as `twinlog mirror --json` would print it."""
        output, errors = self._process.communicate(timeout=timeout_s)
        assert self._process.returncode == 0, errors.decode()
        answer: dict[str, Any] = json.loads(output)
        return answer


def main() -> None:
    """In the child: carry out the job that comes in, and print the run's result as JSON if we live to see it."""
    job: Job = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the test that started us
    if job.step is not None:
        _arm(job)
    json.dump(_done(job), sys.stdout)


def _done(job: Job) -> dict[str, Any]:
    flow = job.flow
    if job.work is Work.MIGRATE:
        return migrate(flow).to_json()
    if job.work is Work.CUT_OVER:
        return cut_over(flow).to_json()
    mirror = Mirror(flow.topology, flow.flow, flow.ends(), flow.ledger, lease_s=job.lease_s)
    return mirror.run(carry_out_here, tasks=2, run=job.run).to_json()


class _Trigger:
    """Strikes at the n-th call."""

    def __init__(self, job: Job) -> None:
        self._left = job.nth
        self._signal = job.signal

    def due(self) -> bool:
        self._left -= 1
        return self._left == 0

    def strike(self) -> None:
        os.kill(os.getpid(), self._signal)

    def hit(self) -> None:
        if self.due():
            self.strike()


def _arm(job: Job) -> None:
    trigger = _Trigger(job)
    arming = {
        Step.BEFORE_PRODUCE: lambda: _wrap_produce(trigger, _before, of_journal=False),
        Step.DURING_PRODUCE: lambda: _wrap_produce(trigger, _sent, of_journal=False),
        Step.AFTER_PRODUCE: lambda: _wrap_produce(trigger, _after, of_journal=False),
        Step.BEFORE_JOURNAL: lambda: _wrap_produce(trigger, _before, of_journal=True),
        Step.BEFORE_POSITIONS: lambda: _wrap_writer("commit_positions", trigger, _before),
        Step.BEFORE_COMMIT: lambda: _wrap_writer("commit", trigger, _before),
        Step.COMMIT_SENT: lambda: _wrap_writer("commit", trigger, _sent),
        Step.AFTER_COMMIT: lambda: _wrap_writer("commit", trigger, _after),
        Step.BEFORE_LEDGER: lambda: _wrap_call(Ledger, "append", trigger),
        Step.DURING_LEDGER: lambda: _wrap_publish(trigger),
        Step.BEFORE_RELEASE: lambda: _wrap_call(lease.FlowRecord, "released_by", trigger),
        Step.BEFORE_FENCING: lambda: _wrap_fencing(trigger),
        Step.BEFORE_GROUPS: lambda: _wrap_call(GroupMoving, "move", trigger),
    }
    arming[job.step]()


Around = Callable[[_Trigger, TransactionalWriter, Callable[[], Any]], Any]


async def _before(trigger: _Trigger, writer: TransactionalWriter, call: Callable[[], Any]) -> Any:
    trigger.hit()
    return await call()


async def _sent(trigger: _Trigger, writer: TransactionalWriter, call: Callable[[], Any]) -> Any:
    if not trigger.due():
        return await call()
    answer = writer._client.spawn(call())
    await writer._client.pause(_SENT_S)
    trigger.strike()
    return await answer


async def _after(trigger: _Trigger, writer: TransactionalWriter, call: Callable[[], Any]) -> Any:
    answer = await call()
    trigger.hit()
    return answer


def _wrap_writer(name: str, trigger: _Trigger, around: Around, applies: Callable[..., bool] = lambda *_: True) -> None:
    original = getattr(TransactionalWriter, name)

    async def wrapped(writer: TransactionalWriter, *arguments: Any) -> Any:
        if writer.transactional_id.endswith((".state", ".made")) or not applies(*arguments):
            return await original(writer, *arguments)
        return await around(trigger, writer, lambda: original(writer, *arguments))

    setattr(TransactionalWriter, name, wrapped)


def _wrap_produce(trigger: _Trigger, around: Around, *, of_journal: bool) -> None:
    def applies(_node_id: int | None, batches: Any) -> bool:
        return of_journal == any(partition.topic.endswith(".journal.internal") for partition in batches)

    _wrap_writer("produce", trigger, around, applies)


def _wrap_call(owner: Any, name: str, trigger: _Trigger) -> None:
    original = getattr(owner, name)

    def wrapped(*arguments: Any) -> Any:
        trigger.hit()
        return original(*arguments)

    setattr(owner, name, wrapped)


def _wrap_publish(trigger: _Trigger) -> None:
    """Strike between the ledger's mark and its rows."""
    original = Folder.publish

    def wrapped(folder: Folder, name: str, content: Any) -> None:
        if name.endswith(".parquet"):
            trigger.hit()
        original(folder, name, content)

    Folder.publish = wrapped  # type: ignore[method-assign]


def _wrap_fencing(trigger: _Trigger) -> None:
    async def wrapped(*arguments: Any) -> None:
        trigger.hit()
        await fencing.fence_lanes(*arguments)

    lease.fence_lanes = wrapped  # type: ignore[attr-defined]
