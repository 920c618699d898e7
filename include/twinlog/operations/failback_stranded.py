"""The stranded records of a flow whose source has returned: read, counted, listed; `failback_survey` says which."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from twinlog.cluster.inventory import settled_offsets
from twinlog.cluster.log_offsets import OffsetAt
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import named
from twinlog.cluster.span_reader import SpanReader
from twinlog.cluster.topic_settings import read_settings
from twinlog.ledger.failbacks import StrandedRecord
from twinlog.model.failback import Stranded, StrandedSpan
from twinlog.model.topology import Flow
from twinlog.operations.failback_plan import LISTED_AT_MOST, StrandedListed, StrandedPartition
from twinlog.operations.failback_survey import Mirrored

STRANDED_TOPIC = ".stranded"
_POLICY = "cleanup.policy"


def stranded_rows(
    source: RawClient,
    target: RawClient,
    mirrored: Mirrored,
    spans: Sequence[StrandedSpan],
    listed: list[StrandedRecord],
) -> Iterator[StrandedPartition]:
    """What of each partition is stranded; `listed` gets the first LISTED_AT_MOST of the records."""
    twins = [span.pair.target for span in spans]
    view = target.run(target.metadata({twin.topic for twin in twins})) if twins else None
    ends = {} if view is None else target.run(settled_offsets(target, view, twins, OffsetAt.LAST_STABLE)).offsets
    for span in spans:
        pair, records = span.pair, 0
        for part in stranded_parts(source, span):
            records += len(part)
            listed += part[: max(0, LISTED_AT_MOST - len(listed))]
        if not records and not span.expired:
            continue
        since = mirrored.positions[pair.target].target_end
        yield StrandedPartition(
            pair.source_topic,
            pair.target_topic,
            pair.partition,
            span.start,
            span.end,
            records,
            span.expired,
            since,
            max(since, ends.get(pair.target, since)),
        )


def last_values(source: RawClient, flow: Flow, topics: Collection[str], chosen: Stranded) -> Iterator[str]:
    """Of compacted topics it is the last record of a key that counts, and the two sides may not agree on it."""
    read = source.run(read_settings(source, sorted(topics), [_POLICY])).topics
    compacted = [name for name, settings in read.items() if "compact" in settings.effective.get(_POLICY, "")]
    # Nobody writes a version of a subject twice.
    compacted = [name for name in compacted if name != flow.schemas_topic]
    if compacted:
        which = "older" if chosen is Stranded.APPEND else "not the same"
        yield (
            f"{named(compacted)} {'is' if len(compacted) == 1 else 'are'} compacted: the last value of a key that "
            f"was stranded may be {which} on {flow.target} afterwards; write such keys again, or rebuild"
        )


def stranded_parts(source: RawClient, span: StrandedSpan) -> Iterator[list[StrandedRecord]]:
    """The committed records of a span that did not come from the target, in order, as they come."""
    for piece, came_back in span.pieces:
        reader, at = SpanReader(source, span.pair.source, piece.end), piece.start
        while at < piece.end and not came_back:
            found, at = source.run(reader.records(at))
            yield [
                StrandedRecord(
                    span.pair.source_topic,
                    span.pair.partition,
                    record.offset,
                    record.timestamp_ms,
                    record.key,
                    record.value,
                    [(header.key, header.value) for header in record.headers],
                )
                for record in found
            ]


def row_of(record: StrandedRecord) -> StrandedListed:
    key = None if record.key is None else record.key.decode(errors="replace")
    return StrandedListed(record.topic, record.partition, record.offset, record.timestamp_ms, key)
