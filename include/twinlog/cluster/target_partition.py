"""One target partition of a lane: what has been acknowledged there, and what the open transaction will say of it.

    target    ... r r r | M | r r r ? r r        r ours   M our marker   ? given to somebody else
                        ^ target_end   ^ a jump
                            ^ expected

Offsets are given out by the broker in the order in which we send, so a batch that lands behind `expected` tells that
others write here too; one that lands before `target_end` tells that this is not the log we knew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from twinlog.cluster.foreign import Suspicion
from twinlog.cluster.source_partition import Parcel
from twinlog.errors import PartitionRefusedError
from twinlog.model.findings import FindingKind
from twinlog.model.offsets import UNKNOWN, GapKind, PartitionPair, Segment
from twinlog.model.positions import Position
from twinlog.model.segment_builder import Copied, SegmentBuilder
from twinlog.wire.digest import chain
from twinlog.wire.outgoing import Gaps, OutgoingBatch


@dataclass(slots=True)
class TargetPartition:
    """One partition within the open transaction."""

    pair: PartitionPair
    position: int
    leader_epoch: int
    """The source's, of the last batch before `position`."""
    target_end: int
    """The target offset after the last record of ours."""
    seen_end: int
    """How far the source is known to be ready; a batch that straddles it may bring the position further."""
    expected: int
    """Where the target will put our next record, if nobody else writes there."""
    leader: int | None
    carried: dict[GapKind, int] = field(default_factory=dict)
    in_flight: int = 0
    touched: bool = False
    """The transaction has something to say of this partition, be it only a position."""
    written: bool = False
    """The transaction has records here, and so will leave its marker."""
    suspicion: Suspicion | None = None
    closing: Segment | None = None
    """The last word on the source topic that this one has replaced; said once, with the first position of this one."""
    _builder: SegmentBuilder = field(init=False)

    def __post_init__(self) -> None:
        self._builder = SegmentBuilder(self.pair, chain)

    def suspect(self, start: int, end: int) -> None:
        """Remember that `[start, end)` may hold records of others."""
        if self.suspicion is None:
            self.suspicion = Suspicion(self.pair, start, end)
        else:
            self.suspicion.widen(start, end)

    def pass_over(self, parcel: Parcel) -> None:
        """Note offsets that have no record to send, once everything before them is acknowledged."""
        self._carry(parcel.trailing)
        self.position, self.leader_epoch = parcel.end, parcel.leader_epoch
        self.touched = True

    def sent(self) -> None:
        self.in_flight += 1
        self.touched = self.written = True

    def acknowledge(self, parcel: Parcel, base_offset: int, cluster: str) -> OutgoingBatch:
        """Note that the parcel's batch was put at `base_offset`."""
        if base_offset < self.target_end:
            raise PartitionRefusedError(
                self.pair.target,
                FindingKind.TARGET_REPLACED,
                f"cluster {cluster}: {self.pair.target} took a record at offset {base_offset}, below "
                f"{self.target_end}, where the copied records ended: the topic was cut or made anew. Nothing was "
                "committed; run again to start anew, or check what happened to the topic",
            )
        if base_offset > self.expected:
            self.suspect(self.expected, base_offset)
        batch = batch_of(parcel)
        target_start = base_offset
        for run in batch.runs:
            self._carry(run.gaps)
            self._builder.add(
                Copied(
                    run.source_start,
                    target_start,
                    run.record_count,
                    run.first_timestamp_ms,
                    run.max_timestamp_ms,
                    run.size_bytes,
                    run.digest,
                    self.carried,
                )
            )
            self.carried = {}
            target_start += run.record_count
        self.position, self.leader_epoch = parcel.end, parcel.leader_epoch
        self.target_end = self.expected = target_start
        return batch

    def segments(self) -> Iterator[Segment]:
        """What the transaction copied here, for the journal."""
        if self.closing is not None:
            yield self.closing
            self.closing = None
        yield from self._builder.finish(self.carried, self.position, self.target_end)
        self.carried = {}

    def known_beside(self, segment: Segment) -> tuple[int, int]:
        """What the position that goes with the segment says of its source: how far it was seen, and the epoch."""
        if segment.pair != self.pair:
            return UNKNOWN, UNKNOWN
        return max(self.seen_end, self.position), self.leader_epoch

    def new_position(self) -> Position:
        pair = self.pair
        return Position(
            self.position,
            pair.source_topic_id,
            pair.target_topic_id,
            self.leader_epoch,
            self.target_end,
            max(self.seen_end, self.position),
        )

    def committed(self) -> None:
        """The transaction has ended, and its marker, where there is one, takes the next offset."""
        self.expected += self.written
        self.touched = self.written = False

    def _carry(self, gaps: Gaps) -> None:
        for kind, offsets in (
            (GapKind.ABORTED, gaps.aborted),
            (GapKind.CONTROL, gaps.control),
            (GapKind.COMPACTED, gaps.compacted),
            (GapKind.FILTERED, gaps.filtered),
        ):
            if offsets:
                self.carried[kind] = self.carried.get(kind, 0) + offsets


def batch_of(parcel: Parcel) -> OutgoingBatch:
    if parcel.batch is None:
        raise ValueError("a parcel without a batch was sent")
    return parcel.batch
