"""Keeps the positions of idle partitions from being forgotten, and recovers those that were.

Brokers drop the committed offsets of a group without members some time after each was committed, partition by
partition. A partition that nobody writes to would be copied again from its beginning; so positions are written anew
several times within that time, and one that is missing although its partition has been copied is taken from the
ledger, which is brought up to date first.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.offsets_retention import offsets_retention_s
from twinlog.cluster.position_writer import write_positions_anew
from twinlog.cluster.raw import RawClient
from twinlog.ledger.last_positions import last_positions
from twinlog.ledger.store import Ledger
from twinlog.model.flow_state import FlowRecord, Holder
from twinlog.model.offsets import PartitionPair, TopicPartition
from twinlog.model.plan import Partitions
from twinlog.model.positions import Position
from twinlog.model.topology import Flow
from twinlog.operations.lease import flow_store
from twinlog.operations.recording import bring_up_to_date

MOST_AGE_S = 24 * 3600.0
RENEWALS_A_RETENTION = 4
"""Well within the time: a flow may stand still for most of it and has its positions yet."""


async def renewal_due(target: RawClient, record: FlowRecord) -> bool:
    """Whether the positions were last written anew too long ago."""
    retention_s = await offsets_retention_s(target)
    return _now_ms() - record.renewed_at_ms >= min(MOST_AGE_S, retention_s / RENEWALS_A_RETENTION) * 1000


@dataclass(frozen=True)
class PositionKeeper:
    """The positions of one flow, under the lease of one try of a run."""

    flow: Flow
    holder: Holder
    record: FlowRecord
    access: ClusterAccess
    target: RawClient
    ledger: Ledger

    def recover(self, found: Partitions) -> Partitions:
        """`found` with the positions that were forgotten, which are on the target again when this returns."""
        # Where nothing was ever written, nothing was copied. A log that retention has emptied is another matter: what
        # was lost before it was copied is counted from the position on.
        suspects = [
            pair for row, pair in enumerate(found.pairs) if found.positions[row] is None and found.last_stable[row] > 0
        ]
        if not suspects:
            return found
        bring_up_to_date(self.ledger, self.flow, self.access, self.target, {pair.target for pair in suspects})
        forgotten = last_positions(self.ledger, suspects)
        return _with(found, self._write([pair for pair in suspects if pair.target in forgotten], forgotten))

    def renew_if_due(self, found: Partitions) -> Partitions:
        """Write all positions anew where that was last done too long ago."""
        if not self.target.run(renewal_due(self.target, self.record)):
            return found
        now_ms = _now_ms()
        known = [pair for row, pair in enumerate(found.pairs) if found.positions[row] is not None]
        renewed = _with(found, self._write(known, {}))
        store = flow_store(self.flow, self.target)
        self.target.run(store.change(lambda record: replace(record, renewed_at_ms=now_ms)))
        return renewed

    def _write(
        self, pairs: list[PartitionPair], forgotten: Mapping[TopicPartition, Position]
    ) -> dict[TopicPartition, Position]:
        return self.target.run(
            write_positions_anew(
                self.target,
                flow_store(self.flow, self.target),
                flow=self.flow.name,
                holder=self.holder,
                lanes=self.record.lanes,
                partitions=[pair.target for pair in pairs],
                forgotten=forgotten,
            )
        )


def _with(found: Partitions, written: Mapping[TopicPartition, Position]) -> Partitions:
    positions = [written.get(pair.target, before) for pair, before in zip(found.pairs, found.positions, strict=True)]
    return replace(found, positions=positions)


def _now_ms() -> int:
    return int(time.time() * 1000)
