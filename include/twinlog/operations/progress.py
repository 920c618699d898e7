"""How far a run has come, seen from the target: the committed positions, asked for now and then.

It works the same wherever the tasks run, counts only what is committed, and costs one request a look.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.committed import fetch_positions
from twinlog.errors import ClusterError
from twinlog.model.lanes import position_group
from twinlog.model.plan import PlannedRange

EVERY_S = 1.0


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
    """Call `show` every second while the block runs, and once at its end."""
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(flow, access, ranges, show, over), name="progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _watch(flow: str, access: ClusterAccess, ranges: Sequence[PlannedRange], show: Show, over: threading.Event) -> None:
    started = time.monotonic()
    with access.raw() as client:
        ended = False
        while not ended:
            ended = over.wait(EVERY_S)
            try:
                positions = client.run(fetch_positions(client, position_group(flow)))
            except ClusterError:
                continue  # a look that fails is not the run's failure; the next one may succeed
            records, size = 0, 0
            for planned in ranges:
                position = positions.get(planned.pair.target)
                if position is None or position.source_topic_id != planned.pair.source_topic_id:
                    continue
                done = min(max(position.offset - planned.range.start, 0), planned.range.offsets)
                records += done
                size += planned.bytes * done // max(planned.range.offsets, 1)
            show(
                Progress(
                    records,
                    sum(planned.range.offsets for planned in ranges),
                    size,
                    sum(planned.bytes for planned in ranges),
                    time.monotonic() - started,
                )
            )
