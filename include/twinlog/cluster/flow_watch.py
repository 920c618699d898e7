"""Keeps an eye on the flow's record on the target while a task's lanes copy: one reader a task.

People change a flow while it runs. Another throttle holds from then on; a flow that may no longer run, or whose lease
another run has, or another try of this one, is drained: each lane commits what it has and stops. That is a courtesy
which saves work. What makes it safe is that whoever takes over fences the lanes.
"""

from __future__ import annotations

import logging
import time

from twinlog.cluster.flow_store import FlowStore
from twinlog.cluster.raw import RawClient
from twinlog.cluster.signal import Signal
from twinlog.cluster.task_shares import TaskShares
from twinlog.errors import TwinlogError
from twinlog.model.flow_state import FlowRecord, Holder
from twinlog.model.throttle import Throttle

TICK_S = 0.1
READ_EVERY_S = 2.0

_LOG = logging.getLogger(__name__)


class FlowWatch:
    """The task's throttle, and the reason to stop once there is one."""

    def __init__(
        self, client: RawClient, store: FlowStore, *, flow: str, holder: Holder, lanes: int, shares: TaskShares
    ) -> None:
        """`holder` is who gave the task its order; `lanes` is into how many lanes the task's plan has cut the flow."""
        self._client = client
        self._store = store
        self._flow = flow
        self._holder = holder
        self._planned_lanes = lanes
        self._shares = shares
        self._ended = False
        self._lanes: set[Signal] = set()
        self.throttle = Throttle(0.0, time.monotonic())
        self.stop: str | None = None

    async def read(self) -> None:
        """Read the record now and heed it."""
        record = await self._store.read()
        self.stop = self.stop or self._reason_to_stop(record)
        share = await self._shares.current() if record.throttle_bytes_per_s else 1.0
        self.throttle.change(record.throttle_bytes_per_s * share, time.monotonic())

    def wake(self, lane: Signal) -> None:
        """Notify `lane` a few times a second, so that it sees its time run out while nothing arrives."""
        self._lanes.add(lane)

    def let_sleep(self, lane: Signal) -> None:
        self._lanes.discard(lane)

    async def run(self) -> None:
        """Tick and read until `end`."""
        await self._client.gather((self._tick(), self._read_again_and_again()))

    def end(self) -> None:
        self._ended = True

    async def _tick(self) -> None:
        while not self._ended:
            await self._client.pause(TICK_S)
            for lane in tuple(self._lanes):
                lane.notify()

    async def _read_again_and_again(self) -> None:
        read_at = time.monotonic()
        while not self._ended:
            await self._client.pause(TICK_S)
            if time.monotonic() < read_at + READ_EVERY_S:
                continue
            read_at = time.monotonic()
            try:
                await self.read()
            except TwinlogError as failure:
                # The lanes meet the same cluster and report it; a later look may succeed.
                _LOG.warning("the state of %s could not be looked at: %s", self._flow, failure)

    def _reason_to_stop(self, record: FlowRecord) -> str | None:
        reason = record.reason_to_stop(self._holder, self._flow)
        if reason is not None:
            return reason
        if record.lanes != self._planned_lanes:
            return f"{self._flow} has {record.lanes} lanes now; this was planned for {self._planned_lanes}"
        return None
