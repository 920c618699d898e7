"""The last step of a run: the journal's new entries, behind the barrier, into the ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import pyarrow as pa  # noqa: TID253 - no DAG imports an operation at its top
import pyarrow.compute as pc  # noqa: TID253 - as above

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.log_offsets import OffsetAt, list_offsets
from twinlog.cluster.metadata import ClusterMetadata
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import demand, principal_of, refusal_named
from twinlog.errors import ClusterError, ClusterUnreachableError
from twinlog.ledger import journal_reader
from twinlog.ledger.barrier import Proven, behind
from twinlog.ledger.journal import Journal
from twinlog.ledger.rebuild import Rebuilt, rebuild
from twinlog.ledger.record import Recorded, record
from twinlog.ledger.schema import GAP_COLUMNS
from twinlog.ledger.store import Ledger
from twinlog.model.lanes import journal_topic
from twinlog.model.offsets import TopicPartition
from twinlog.model.topology import Flow
from twinlog.operations.mirror_result import RecordedRun

T = TypeVar("T")

ATTEMPTS = 6
PAUSE_S = 0.5
PATIENCE_S = 60.0
"""With a broker that hangs, an attempt takes as long as a request may; the next run records what this one left."""

TOTALLED = ("count", "bytes", *GAP_COLUMNS.values())


def bring_up_to_date(
    ledger: Ledger, flow: Flow, access: ClusterAccess, target: RawClient, twins: set[TopicPartition]
) -> Proven[Recorded]:
    """Record everything whose data is visible on the target by now; asks nothing of the source.

    It is tried again where a broker is out of reach: connections have idled while others copied, and recording twice
    changes nothing.
    """
    attempt = 1
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return _behind_barrier(flow, access, target, twins, lambda journal, ends: record(ledger, journal, ends))
        except ClusterUnreachableError:
            if attempt == ATTEMPTS or time.monotonic() >= deadline:
                raise
        target.run(target.pause(PAUSE_S * attempt))
        attempt += 1


def anything_new(ledger: Ledger, flow: Flow, access: ClusterAccess, target: RawClient) -> bool:
    """Whether the journal has decided entries that the ledger has not; waits for nothing and changes nothing."""
    view = target.run(target.metadata([journal_topic(flow.source, flow.target)]))
    journal, mark = _journal(flow, access, target, view), ledger.mark()
    if mark.journal_id not in ("", journal.topic_id):
        return True
    partitions = [TopicPartition(journal.topic, number) for number in range(len(view.topics[journal.topic].partitions))]
    stable = target.run(list_offsets(target, view, partitions, OffsetAt.LAST_STABLE)).offsets
    ends = {partition.partition: end for partition, end in stable.items()}
    # The ends lie beyond the mark for as long as the newest entries are markers, or say that others were removed.
    further = {**mark.offsets, **{number: max(end, mark.offsets.get(number, 0)) for number, end in ends.items()}}
    return any(chunk for chunk in journal_reader.read(journal, mark, further))


def rebuild_ledger(ledger: Ledger, flow: Flow, access: ClusterAccess) -> Rebuilt:
    """Make the ledger anew from all that the journal holds."""
    with access.raw() as target:
        return _behind_barrier(flow, access, target, set(), lambda journal, ends: rebuild(ledger, journal, ends)).read


def journal_of(flow: Flow, access: ClusterAccess, target: RawClient) -> Journal:
    """The flow's journal as it is on the target now."""
    return _journal(flow, access, target, target.run(target.metadata([journal_topic(flow.source, flow.target)])))


def _journal(flow: Flow, access: ClusterAccess, target: RawClient, view: ClusterMetadata) -> Journal:
    topic = view.topics[journal_topic(flow.source, flow.target)]
    principal = principal_of(access.settings)
    if topic.error is not None and (refused := refusal_named(topic.error)).not_allowed:
        consequence = "the ledger can't be brought up to date"
        demand(flow.target, principal, "DESCRIBE", {f"topic {topic.name}": refused}, consequence)
    if topic.topic_id is None or topic.error is not None:
        raise ClusterError(f"cluster {flow.target}: the journal {topic.name} can't be read: {topic.error}")
    return Journal(topic.name, str(topic.topic_id), target, principal)


def _behind_barrier(
    flow: Flow,
    access: ClusterAccess,
    target: RawClient,
    twins: set[TopicPartition],
    read: Callable[[Journal, Mapping[int, int]], T],
) -> Proven[T]:
    topic = journal_topic(flow.source, flow.target)
    view = target.run(target.metadata({twin.topic for twin in twins} | {topic}))
    journal = _journal(flow, access, target, view)

    def journal_ends() -> dict[int, int]:
        partitions = [TopicPartition(topic, number) for number in range(len(view.topics[topic].partitions))]
        listing = target.run(list_offsets(target, view, partitions, OffsetAt.LOG_END))
        if listing.failed:
            raise ClusterUnreachableError(
                f"cluster {flow.target}: the journal's ends can't be read: {dict(listing.failed)}; try again"
            )
        return {partition.partition: end for partition, end in listing.offsets.items()}

    return behind(
        lambda: target.run(list_offsets(target, view, twins, OffsetAt.LAST_STABLE)).offsets,
        journal_ends,
        lambda ends: read(journal, ends),
    )


def rows_of_run(ledger: Ledger, since: int, run: str, columns: Sequence[str]) -> pa.Table:
    """These columns of the entries of `run`, of all that was recorded `since` it began, by whomever."""
    _, rows = ledger.read_some(
        lambda files: [file for file in files if file.link.after.total > since], ["run", *columns]
    )
    return rows.filter(pc.equal(rows.column("run").cast("string"), run)).select(list(columns))


def run_totals(rows: pa.Table) -> RecordedRun:
    """What the entries of a run add up to; they have TOTALLED and the source's topic among their columns."""
    totals = {name: pc.sum(rows.column(name)).as_py() or 0 for name in TOTALLED}
    gaps = {kind.value: totals[column] for kind, column in GAP_COLUMNS.items() if totals[column]}
    filled = rows.filter(pc.greater(rows.column("count"), 0)).column("source_topic").cast(pa.string())
    return RecordedRun(totals["count"], totals["bytes"], gaps, tuple(sorted(filled.unique().to_pylist())))
