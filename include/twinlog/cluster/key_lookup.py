"""Looks keys up further on in a log: the log cleaner removes a record only for a later one of its key.

That later one may itself have been a tombstone that was removed since; then the other side, which still has the record,
has the tombstone too, or the record had no right to go.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from twinlog.cluster.log_reader import Reading, flipped, read_spans
from twinlog.cluster.proof_order import KeyAnswer, KeyLookup
from twinlog.cluster.raw import RawClient
from twinlog.cluster.record_proof import LogMovedError
from twinlog.cluster.source_partition import FetchSettings
from twinlog.model.offsets import PartitionPair, Span
from twinlog.model.throttle import Throttle
from twinlog.wire.outgoing import OutgoingBatch
from twinlog.wire.outgoing_records import facts_of
from twinlog.wire.source import SourcePartition


@dataclass
class _Seen:
    last: dict[bytes, int] = field(default_factory=dict)
    bytes: int = 0


async def look_up(
    lookup: KeyLookup, source: RawClient, target: RawClient, fetch: FetchSettings, throttles: tuple[Throttle, Throttle]
) -> KeyAnswer:
    """One pass over the rest of the log; over the other side's only for keys that this one does not have."""
    at_source = lookup.side == "source"
    here, there = (source, target) if at_source else (target, source)
    pair, other = (lookup.pair, flipped(lookup.pair)) if at_source else (flipped(lookup.pair), lookup.pair)
    near, far = throttles if at_source else (throttles[1], throttles[0])
    found = await _scan(here, pair, lookup.span, lookup.keys, fetch, near, tombstones=False)
    unknown = lookup.keys - found.last.keys()
    tombstones = _Seen()
    if unknown:
        tombstones = await _scan(there, other, lookup.other_span, unknown, fetch, far, tombstones=True)
    read = (found.bytes, tombstones.bytes) if at_source else (tombstones.bytes, found.bytes)
    return KeyAnswer(lookup.pair, lookup.side, found.last, tombstones.last, *read)


async def _scan(  # noqa: PLR0917 - one side, as `look_up` has it
    client: RawClient,
    pair: PartitionPair,
    span: Span,
    keys: frozenset[bytes],
    fetch: FetchSettings,
    throttle: Throttle,
    *,
    tombstones: bool,
) -> _Seen:
    source = SourcePartition(client.alias, pair.source_topic, pair.partition)
    seen = _Seen()

    def take(batch: OutgoingBatch) -> None:
        for fact in facts_of(batch, source):
            if fact.key is not None and fact.key in keys and (not tombstones or fact.value is None):
                seen.last[fact.key] = fact.offset

    result = await read_spans(client, [Reading(pair, span, take)], fetch, throttle)
    for finding in result.refused.values():
        raise LogMovedError(finding.message)
    seen.bytes = result.bytes
    return seen
