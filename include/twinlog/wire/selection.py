"""One partition's bytes of a Fetch answer turned into batches to send, with every offset accounted for.

        start                                                     end
          v                                                        v
     8 9 | 10 11 | 12 | 13 14 | 15 . 17 | 18 19 | . . | 22 23 24 |
     s s   r  r    C    a  a    r    r    e  e          r  r  r
           run 1                run 2
                                     run 3              run 4
     gaps:   -          control 1, aborted 2  (before run 2)
                                   compacted 1 (run 3)
                                             compacted 4 (before run 4)

     s before the start, in a batch that straddles it   C marker   a aborted   e emptied batch   . removed

Always: counts of all runs + gaps of all runs + trailing gaps = end - start + carried gaps. `end` is the end
of the last whole batch, so a batch that crosses `stop` is taken whole; where `stop` lies in a hole, the
hole is counted up to it.

Offsets must rise from batch to batch and stay below `bound`: base offsets have no checksum, and a wrong one
must not become a wrong copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from twinlog.wire.aborted import AbortedTransactions
from twinlog.wire.batches import Batch, LegacyMessage, read_batches
from twinlog.wire.digest import digest_batch
from twinlog.wire.encoder import encode
from twinlog.wire.header import CODEC_BITS
from twinlog.wire.legacy import read_message
from twinlog.wire.outgoing import NO_GAPS, Gaps, OutgoingBatch, Run
from twinlog.wire.records import RawRecord, read_raw
from twinlog.wire.source import SourcePartition, corrupt
from twinlog.wire.verdict import Verdict, judge

NO_EPOCH = -1
"""Formats 0 and 1 do not tell."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What to send of a Fetch answer, and where to go on."""

    batches: tuple[OutgoingBatch, ...]
    end: int
    """The next offset to fetch: everything before it is in a run or counted in a gap."""
    trailing: Gaps
    """Gaps after the last run; to be carried into the next selection, or journalled if there is none."""
    verdicts: Mapping[Verdict, int]
    """How many source batches went which way."""
    epochs: tuple[int, ...]
    """For each of `batches`, the leader epoch that its source batch was written in; -1 where it says none."""
    last_epoch: int
    """The same of the last source batch, whatever became of it."""


def select(
    data: memoryview,
    *,
    source: SourcePartition,
    start: int,
    aborted: AbortedTransactions,
    bound: int,
    max_batch_bytes: int,
    stop: int | None = None,
    carried: Gaps = NO_GAPS,
) -> Selection:
    """Select from the bytes that a fetch at `start` brought.

    `bound` is the answer's last stable offset (or high watermark): no batch may reach beyond it. Batches that
    begin at or after `stop` are left alone. `max_batch_bytes` is the target topic's max.message.bytes.
    """
    work = _Selecting(source, start, bound, max_batch_bytes, carried)
    for batch in read_batches(data, source, start):
        if isinstance(batch, Batch):
            if stop is not None and batch.header.base_offset >= stop:
                work.stop_at(stop)
                break
            work.take(batch, aborted)
        else:
            records = read_message(batch, source)
            if stop is not None and records[0].offset >= stop:
                work.stop_at(stop)
                break
            work.take_legacy(batch, records)
    return work.finish()


class _Selecting:
    """The state of one selection; `position` is the first offset not yet accounted for."""

    def __init__(self, source: SourcePartition, start: int, bound: int, max_batch_bytes: int, carried: Gaps) -> None:
        self.source = source
        self.bound = bound
        self.max_batch_bytes = max_batch_bytes
        self.position = start
        self.first = True
        self.aborted, self.control, self.compacted, self.filtered = carried
        self.out: list[OutgoingBatch] = []
        self.verdicts: Counter[Verdict] = Counter()
        # Uncompressed messages of an old format come one by one; those in a row are sent together.
        self.old: list[RawRecord] = []
        self.epochs: list[int] = []
        self.last_epoch = NO_EPOCH

    def take(self, batch: Batch, aborted: AbortedTransactions) -> None:
        header = batch.header
        self._flush_old()
        self.last_epoch = header.leader_epoch
        self._enter(header.base_offset, header.next_offset)
        verdict = judge(
            header,
            aborted=aborted.follow(batch),
            position=self.position,
            max_batch_bytes=self.max_batch_bytes,
        )
        self.verdicts[verdict] += 1
        if verdict is Verdict.WHOLE:
            self._take_whole(batch)
        elif verdict is Verdict.CONTROL:
            self.control += header.next_offset - self.position
        elif verdict is Verdict.ABORTED:
            self.aborted += header.next_offset - self.position
        elif verdict is Verdict.EMPTIED:
            self.compacted += header.next_offset - self.position
        else:
            self._encode(read_raw(batch, self.source), header.codec)
            self.compacted += header.next_offset - self.position
        self.position = header.next_offset
        self._note_epochs(header.leader_epoch)

    def take_legacy(self, message: LegacyMessage, records: list[RawRecord]) -> None:
        self.verdicts[Verdict.OLD_FORMAT] += 1
        self.last_epoch = NO_EPOCH
        codec = message.attributes & CODEC_BITS
        if not codec and self.old and message.offset == self.old[-1].offset + 1:
            self._check_bound(message.offset, message.next_offset)
            self.old += records
            return
        self._flush_old()
        self._enter(records[0].offset, message.next_offset)
        if codec:
            self._encode(records, codec)
            self._note_epochs(NO_EPOCH)
        else:
            self.old = records

    def stop_at(self, stop: int) -> None:
        self._flush_old()
        if stop > self.position:
            self.compacted += stop - self.position
            self.position = stop

    def finish(self) -> Selection:
        self._flush_old()
        return Selection(
            tuple(self.out), self.position, self._take_gaps(), self.verdicts, tuple(self.epochs), self.last_epoch
        )

    def _take_whole(self, batch: Batch) -> None:
        header, body = batch
        codec = header.attributes & CODEC_BITS
        count = header.record_count
        run = Run(
            header.base_offset,
            count,
            self._take_gaps(),
            header.size_bytes,
            header.first_timestamp_ms,
            header.max_timestamp_ms,
            digest_batch(codec, header.base_timestamp_ms, count, body),
        )
        self.out.append(OutgoingBatch(codec, header.base_timestamp_ms, header.max_timestamp_ms, count, body, (run,)))

    def _encode(self, records: list[RawRecord], codec: int) -> None:
        """Write records anew from the position on, and move the position behind the last of them."""
        wanted = [record for record in records if record.offset >= self.position]
        if not wanted:
            return
        self.compacted += wanted[0].offset - self.position
        self.out += encode(wanted, codec, self._take_gaps(), max_batch_bytes=self.max_batch_bytes, source=self.source)
        self.position = wanted[-1].offset + 1

    def _flush_old(self) -> None:
        if self.old:
            self._encode(self.old, 0)
            self.old = []
            self._note_epochs(NO_EPOCH)

    def _note_epochs(self, epoch: int) -> None:
        """All batches that came out since the last time were written in `epoch`."""
        self.epochs += [epoch] * (len(self.out) - len(self.epochs))

    def _enter(self, base: int, after: int) -> None:
        """Check that a batch may follow, and count the hole before it."""
        position = self.position
        # Only the first batch may begin before what was asked for, and it has to reach it.
        if base < position and (not self.first or after <= position):
            raise corrupt(
                self.source,
                position,
                f"a batch claims offsets {base} to {after - 1}, and offset {position} or later was to follow",
            )
        self._check_bound(base, after)
        self.first = False
        if base > position:
            self.compacted += base - position
            self.position = base

    def _check_bound(self, base: int, after: int) -> None:
        if after > self.bound:
            raise corrupt(
                self.source,
                self.position,
                f"a batch claims offsets {base} to {after - 1}, and the answer ends at {self.bound}",
            )

    def _take_gaps(self) -> Gaps:
        if not (self.compacted or self.control or self.aborted or self.filtered):
            return NO_GAPS
        gaps = Gaps(self.aborted, self.control, self.compacted, self.filtered)
        self.aborted = self.control = self.compacted = self.filtered = 0
        return gaps
