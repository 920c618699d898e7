"""Records on a mirrored partition that the flow did not write.

Between two records of ours, and after the last committed one, there may be transaction markers and what our rolled
back attempts left behind. Anything committed there is somebody else's: a committed record of ours would have moved
the position past it.
"""

from __future__ import annotations

from dataclasses import dataclass

from twinlog.cluster.committed_records import fetch_committed
from twinlog.cluster.raw import RawClient
from twinlog.model.findings import Finding, FindingKind
from twinlog.model.offsets import PartitionPair

MOST_FETCHES = 8
"""A topic that others fill need not be read to its end to know that they do."""


@dataclass(slots=True)
class Suspicion:
    """Target offsets `[start, end)` among which some were not given to us."""

    pair: PartitionPair
    start: int
    end: int

    def widen(self, start: int, end: int) -> None:
        self.start, self.end = min(self.start, start), max(self.end, end)


async def foreign_finding(
    client: RawClient, leader: int | None, suspicion: Suspicion, own_producer_id: int
) -> Finding | None:
    """How many records of others lie there, as far as they are decided and can be read; None where there is none."""
    target, at = suspicion.pair.target, suspicion.start
    offsets: list[int] = []
    records = 0
    for _ in range(MOST_FETCHES):
        batches, after = await fetch_committed(client, leader, target, at)
        for batch in batches:
            header = batch.header
            if header.producer_id != own_producer_id and at <= header.base_offset < suspicion.end:
                records += header.record_count
                offsets += [header.base_offset, header.next_offset - 1]
        if after == at or after >= suspicion.end:
            at = after
            break
        at = after
    if not records:
        return None
    count = f"{records} records" if at >= suspicion.end else f"at least {records} records"
    return Finding(
        FindingKind.FOREIGN,
        suspicion.pair.source,
        offsets[0],
        f"cluster {client.alias}: {target} holds {count} between offsets {offsets[0]} and {offsets[-1]} that somebody "
        "else wrote; copying went on around them, but the twin is no longer what the source holds: stop that writer",
    )
