"""Keeps a flow's ledger and its journal from growing for ever: merges files, drops what both logs have dropped.

What always holds: a row or an entry goes only where both logs are known to start after it, it was copied longer ago
than asked for, and the ledger has recorded it; each pair's last row, and its last with records, stay. It may run at any
time, also beside a run of the flow, beside readers, and beside another one of its kind: files are merged without a lock
(see `ledger.chain`), and removing entries touches no lane (see `journal_trimming`). Cut short at any point it leaves a
right ledger, and the next one does the rest.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.inventory import settled_metadata, settled_offsets
from twinlog.cluster.log_offsets import OffsetAt
from twinlog.cluster.metadata import Topic
from twinlog.cluster.raw import RawClient
from twinlog.errors import ClusterUnreachableError
from twinlog.ledger.compact import Floor, Retention, compact
from twinlog.ledger.pairs import recorded_pairs
from twinlog.ledger.store import Ledger
from twinlog.ledger.trim import removable
from twinlog.model.offsets import PartitionPair, TopicPartition
from twinlog.model.topology import Flow
from twinlog.operations.flow_gate import SOURCE_LEADS, reason_to_leave, record_of
from twinlog.operations.journal_trimming import remove_entries
from twinlog.operations.recording import bring_up_to_date, journal_of

_DAY_MS = 24 * 3600 * 1000
_PAST_EVERY_OFFSET = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LedgerUpkeep:
    """What was done to one flow's ledger and journal."""

    flow: str
    files_merged: int
    rows_before: int
    rows_after: int
    journal_entries_removed: int
    notes: tuple[str, ...]
    """What people must know beside it, each a sentence."""


class _Log(NamedTuple):
    """One log of a pair: a topic made anew has another."""

    topic_id: UUID
    partition: TopicPartition


def keep_up(
    flow: Flow,
    source: ClusterAccess,
    target: ClusterAccess,
    ledger: Ledger,
    *,
    keep_days: float,
    everything: bool = False,
) -> LedgerUpkeep:
    """Bring the ledger up to date, compact it, and remove from the journal what need not be kept.

    `everything` rewrites large files too. Where the source can't be reached, files are merged and nothing is dropped.
    """
    with target.raw() as client:
        proven = bring_up_to_date(ledger, flow, target, client, set())
        pairs, rows_before = recorded_pairs(ledger)
        kept = reason_to_leave(flow, client.run(record_of(flow, client)), None, SOURCE_LEADS)
        if kept is None:
            floors, notes = _floors(flow, pairs, source, client)
        else:
            # What the source has by then may be made anew, or empty; what was mirrored from it must stay known.
            floors, notes = [], [f"{kept}, so nothing was dropped of what it mirrored"]
        copied_before_ms = time.time_ns() // 1_000_000 - int(keep_days * _DAY_MS)
        retention = Retention(floors, copied_before_ms)
        done = compact(ledger, retention, everything=everything, least=1)
        ledger.sweep(time.time_ns() // 1_000_000)
        removed = 0
        if floors:
            journal = journal_of(flow, target, client)
            going = removable(journal, proven.read.mark, proven.journal_ends, retention)
            removed = client.run(remove_entries(client, flow.name, journal.topic, going))
    rows_after = rows_before - done.rows_before + done.rows_after
    return LedgerUpkeep(flow.name, done.files, rows_before, rows_after, removed, tuple(notes))


def floors_of(
    flow: Flow, source: ClusterAccess, target: ClusterAccess, ledger: Ledger
) -> tuple[list[Floor], list[str]]:
    """Where both logs of the ledger's pairs start, for a Spark job to drop rows by: it asks no cluster itself."""
    pairs, _ = recorded_pairs(ledger)
    with target.raw() as client:
        return _floors(flow, pairs, source, client)


def _floors(
    flow: Flow, pairs: Sequence[PartitionPair], access: ClusterAccess, target: RawClient
) -> tuple[list[Floor], list[str]]:
    """Where both logs of the pairs start, of those where that is known; and what there is to say of the others."""
    if not pairs:
        return [], []
    try:
        with access.raw(beside=target) as source:
            sources = source.run(_starts(source, (_Log(pair.source_topic_id, pair.source) for pair in pairs)))
    except ClusterUnreachableError as unreachable:
        note = f"{flow.name}: nothing was dropped, since it isn't known where the source's logs start: {unreachable}"
        return [], [note]
    targets = target.run(_starts(target, (_Log(pair.target_topic_id, pair.target) for pair in pairs)))
    floors = [
        Floor(pair, source_start, target_start)
        for pair in pairs
        if (source_start := sources.get(_Log(pair.source_topic_id, pair.source))) is not None
        and (target_start := targets.get(_Log(pair.target_topic_id, pair.target))) is not None
    ]
    unknown = len(pairs) - len(floors)
    note = f"{flow.name}: nothing was dropped of {unknown:,} partitions, since it isn't known where their logs start"
    return floors, [note] if unknown else []


async def _starts(client: RawClient, logs: Iterable[_Log]) -> dict[_Log, int]:
    """Where each of the logs starts: past every offset where its topic is gone, and not in the answer where the cluster
    would not say."""
    asked = list(dict.fromkeys(logs))
    names = sorted({log.partition.topic for log in asked})
    # Settled, since a broker that has not heard of a topic yet must not pass for one that knows it is gone.
    view = await settled_metadata(client, names)
    topics = view.topics
    current = [log for log in asked if _is_current(topics.get(log.partition.topic), log)]
    listing = await settled_offsets(client, view, [log.partition for log in current], OffsetAt.LOG_START)
    starts = {log: listing.offsets[log.partition] for log in current if log.partition in listing.offsets}
    gone = (log for log in asked if _is_gone(topics.get(log.partition.topic), log))
    return starts | dict.fromkeys(gone, _PAST_EVERY_OFFSET)


def _is_current(topic: Topic | None, log: _Log) -> bool:
    return topic is not None and topic.error is None and topic.topic_id == log.topic_id


def _is_gone(topic: Topic | None, log: _Log) -> bool:
    if topic is None:
        return False
    replaced = topic.error is None and topic.topic_id is not None and topic.topic_id != log.topic_id
    return replaced or topic.is_missing
