"""A partition's log drawn at random, with the truth about each of its offsets known beforehand.

The truth comes from how the log was drawn (which transaction was ended how), never from its bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from support.record_bytes import Row, emptied_batch, make_batch, marker
from twinlog.wire.aborted import AbortedTransaction


@dataclass
class Transaction:
    """An open or ended transaction: the first offset, and how and where it ended."""

    producer_id: int
    first: int
    marker: int = -1
    commit: bool = False


@dataclass
class Log:
    """The batches in order, and what each offset is: a record, or the kind of gap it belongs to."""

    end: int = 0
    batches: list[tuple[int, int, bytes]] = field(default_factory=list)
    """(first offset, offset after the last, bytes)"""
    kinds: dict[int, tuple[str, Transaction | None]] = field(default_factory=dict)
    """What an offset is, unless the transaction beside it was aborted; that takes the batch's holes with it."""
    transactions: list[Transaction] = field(default_factory=list)

    def kind(self, offset: int) -> str:
        kind, transaction = self.kinds.get(offset, ("compacted", None))
        return "aborted" if transaction and not transaction.commit else kind

    def fetch(self, position: int, count: int) -> tuple[bytes, list[AbortedTransaction]]:
        """Up to `count` batches as a broker answers: from the one that holds the position, and the aborted list."""
        found = [batch for batch in self.batches if batch[1] > position][:count]
        upper = found[-1][1] if found else position
        listed = [
            AbortedTransaction(entry.producer_id, entry.first)
            for entry in self.transactions
            if not entry.commit and entry.marker >= position and entry.first < upper
        ]
        return b"".join(batch[2] for batch in found), listed


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Interleaved transactions, plain and idempotent batches, markers and what compaction leaves, in any order."""
    log = Log(end=draw(st.integers(0, 5)))
    open_now: dict[int, Transaction] = {}
    for _ in range(draw(st.integers(1, 14))):
        step = draw(st.sampled_from(["plain", "transactional", "transactional", "end", "hole", "emptied"]))
        if step == "hole":
            log.end += draw(st.integers(1, 3))
        elif step == "emptied":
            span = draw(st.integers(1, 3))
            _append(log, span, emptied_batch(log.end, span))
        elif step == "plain":
            _append_data(draw, log, draw(st.sampled_from([-1, 1])), None)
        elif step == "transactional":
            producer_id = draw(st.integers(1, 3))
            if producer_id not in open_now:
                open_now[producer_id] = Transaction(producer_id, log.end)
                log.transactions.append(open_now[producer_id])
            _append_data(draw, log, producer_id, open_now[producer_id])
        elif open_now:
            _end(draw, log, open_now.pop(draw(st.sampled_from(sorted(open_now)))))
    for producer_id in sorted(open_now):
        _end(draw, log, open_now[producer_id])
    return log


def _append(log: Log, span: int, data: bytes) -> None:
    log.batches.append((log.end, log.end + span, data))
    log.end += span


def _append_data(draw: st.DrawFn, log: Log, producer_id: int, transaction: Transaction | None) -> None:
    span = draw(st.integers(1, 4))
    deltas = list(range(span))
    if draw(st.booleans()):
        deltas = sorted(draw(st.sets(st.integers(0, span - 1), min_size=1)))
    rows = [Row(timestamp=1000 + delta, value=b"%d" % (log.end + delta)) for delta in deltas]
    attributes = 0x10 if transaction else 0
    if draw(st.integers(0, 5)) == 0:
        attributes |= 0x08
    data = make_batch(
        rows,
        log.end,
        draw(st.sampled_from([0, 3])),
        deltas=deltas,
        span=span,
        attributes=attributes,
        producer_id=producer_id,
    )
    for delta in range(span):
        log.kinds[log.end + delta] = ("record" if delta in deltas else "compacted", transaction)
    _append(log, span, data)


def _end(draw: st.DrawFn, log: Log, transaction: Transaction) -> None:
    transaction.commit = draw(st.booleans())
    transaction.marker = log.end
    log.kinds[log.end] = ("control", None)
    _append(log, 1, marker(log.end, transaction.producer_id, commit=transaction.commit))
