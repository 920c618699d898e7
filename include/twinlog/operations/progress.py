"""How far a run has come, seen from the target: the committed positions, asked for now and then.

It works the same wherever the tasks run, counts only what is committed, and costs one request a look. Nothing that goes
wrong with it touches the run: a look that fails is left out, and one that hangs is not waited for.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.committed import fetch_positions
from twinlog.cluster.raw import RawClient
from twinlog.errors import TwinlogError
from twinlog.model.lanes import position_group
from twinlog.model.offsets import TopicPartition
from twinlog.model.plan import PlannedRange
from twinlog.model.positions import Position

EVERY_S = 1.0
LAST_LOOK_WITHIN_S = 5.0

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Progress:
    """One look at a run. Bytes are estimated from the plan; records are offsets that have been passed."""

    records: int
    all_records: int
    bytes: int
    all_bytes: int
    seconds: float

    @property
    def bytes_per_s(self) -> float:
        return self.bytes / self.seconds if self.seconds > 0 else 0.0

    @property
    def left_s(self) -> float | None:
        """How long the rest will take at this rate; None before anything is committed."""
        return (self.all_bytes - self.bytes) / self.bytes_per_s if self.bytes else None


Show = Callable[[Progress], None]


@contextmanager
def watched(flow: str, access: ClusterAccess, ranges: Sequence[PlannedRange], show: Show) -> Iterator[None]:
    """Call `show` every second while the block runs, and once at its end; never after it."""
    watcher = _Watcher(flow, access, ranges, show)
    watching = threading.Thread(target=watcher.watch, name="progress", daemon=True)
    watching.start()
    try:
        yield
    finally:
        watcher.over.set()
        watching.join(LAST_LOOK_WITHIN_S)
        watcher.fall_silent()


class _Watcher:
    """The looks at one run, from a thread of their own."""

    def __init__(self, flow: str, access: ClusterAccess, ranges: Sequence[PlannedRange], show: Show) -> None:
        self._flow = flow
        self._access = access
        self._ranges = ranges
        self._show = show
        self._started = time.monotonic()
        self._showing = threading.Lock()
        self._silent = False
        self.over = threading.Event()

    def watch(self) -> None:
        """Look until it is over, and once more then."""
        client: RawClient | None = None
        try:
            ended = False
            while not ended:
                ended = self.over.wait(EVERY_S)
                try:
                    client = client or self._access.raw()
                    # As they are: lanes that are about to commit must not hold up the look.
                    found = client.run(fetch_positions(client, position_group(self._flow), stable=False))
                except TwinlogError as failure:
                    _LOG.debug("%s: how far the run has come could not be looked at: %s", self._flow, failure)
                    continue
                self._tell(progress_of(self._ranges, found, time.monotonic() - self._started))
        finally:
            if client is not None:
                client.close()

    def fall_silent(self) -> None:
        """Show nothing from here on, whatever a look that is still under way brings."""
        with self._showing:
            self._silent = True

    def _tell(self, progress: Progress) -> None:
        with self._showing:
            if not self._silent:
                self._show(progress)


def progress_of(
    ranges: Sequence[PlannedRange], positions: Mapping[TopicPartition, Position], seconds: float
) -> Progress:
    """How much of the ranges lies before these positions."""
    records, size = 0, 0
    for planned in ranges:
        position = positions.get(planned.pair.target)
        if position is None or position.source_topic_id != planned.pair.source_topic_id:
            continue
        done = min(max(position.offset - planned.range.start, 0), planned.range.offsets)
        records += done
        size += planned.bytes * done // max(planned.range.offsets, 1)
    return Progress(
        records,
        sum(planned.range.offsets for planned in ranges),
        size,
        sum(planned.bytes for planned in ranges),
        seconds,
    )
