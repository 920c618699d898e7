"""The seam between two directions: a flow's source has stood still for a while, and all of it has been copied."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from twinlog.cluster.inventory import settled_offsets
from twinlog.cluster.log_offsets import OffsetAt
from twinlog.cluster.raw import RawClient
from twinlog.errors import FailbackError
from twinlog.intake.extensions import naming_of
from twinlog.model.offsets import TopicPartition
from twinlog.model.topology import Flow
from twinlog.operations.lag import PartitionLag, measure_partitions
from twinlog.operations.run_scope import Ends

NAMED = 5


@dataclass(frozen=True)
class Seam:
    """These topics of a flow's source."""

    flow: Flow
    ends: Ends
    topics: Sequence[str]
    quiet_s: float

    def cut(self, copy: Callable[[], object], deadline: float) -> None:
        """Copy until nothing is left and nothing was written for `quiet_s`."""
        before = self._ends()
        while True:
            copy()
            with self.ends.target.raw() as target, self.ends.source.raw(beside=target) as source:
                if not self._left(source, target):
                    target.run(target.pause(self.quiet_s))
                    after = self._ends()
                    if after == before and not self._left(source, target):
                        return
                    before = after
                else:
                    before = self._ends()
                if time.monotonic() > deadline:
                    raise FailbackError(self._said(source, target))

    def reach(self, copy: Callable[[], object], deadline: float) -> None:
        """Copy until all is copied that is there when this begins, whoever goes on writing."""
        ends = self._ends()
        while True:
            copy()
            with self.ends.target.raw() as target, self.ends.source.raw(beside=target) as source:
                if not self._before(ends, source, target):
                    return
                if time.monotonic() > deadline:
                    raise FailbackError(self._said(source, target))

    def _before(self, ends: Mapping[TopicPartition, int], source: RawClient, target: RawClient) -> bool:
        """Whether anything before these ends is not copied."""
        for partition, lag in self._lags(source, target).items():
            if lag.records is None or lag.end is None or lag.end - lag.records < ends.get(partition, 0):
                return True
        return False

    def _left(self, source: RawClient, target: RawClient) -> dict[TopicPartition, int | None]:
        """What of the partitions is not copied yet, in offsets."""
        lags = self._lags(source, target)
        return {partition: lag.records for partition, lag in lags.items() if lag.records != 0}

    def _lags(self, source: RawClient, target: RawClient) -> dict[TopicPartition, PartitionLag]:
        partitions = self._partitions(source)
        return target.run(measure_partitions(source, target, self.flow, naming_of(self.flow), partitions))

    def _ends(self) -> dict[TopicPartition, int]:
        with self.ends.source.raw() as source:
            partitions = self._partitions(source)
            view = source.run(source.metadata(list(self.topics)))
            return dict(source.run(settled_offsets(source, view, partitions, OffsetAt.LOG_END)).offsets)

    def _partitions(self, source: RawClient) -> list[TopicPartition]:
        view = source.run(source.metadata(list(self.topics))) if self.topics else None
        topics = [] if view is None else [view.topics[name] for name in self.topics]
        return [TopicPartition(topic.name, number) for topic in topics for number in range(len(topic.partitions))]

    def _said(self, source: RawClient, target: RawClient) -> str:
        left = self._left(source, target)
        if left:
            names = sorted({partition.topic for partition in left})
            return (
                f"{self.flow.name}: {len(left):,} partitions are not copied to their end in time "
                f"({', '.join(names[:NAMED])}); is a transaction open there? Run again to go on"
            )
        return (
            f"{self.flow.name}: producers still write to {', '.join(self.topics[:NAMED])} on {self.flow.source}: stop "
            "them, or block their writes, and run again to go on"
        )
