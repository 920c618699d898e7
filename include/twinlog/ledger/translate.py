"""Exact translation of offsets, source to target and back, for one offset or a million.

    source   10 11 12 | 13 marker | 14 15 | position 16
    target   40 41 42 | 43 marker | 44 45 | (46 marker)

    forward  11 -> 41 copied     13 -> 44 next copied     16 -> 46 end     20 -> none, mirror behind by 4
    reverse  41 -> 11 copied     43 -> 14 next copied     46 -> 16 end

What always holds: a row counts only while both its topic ids are the current ones; the answer is the offset
of the first copied record at or after the one that was asked for, so a reader who goes on there reads none
again and skips none; and where the ledger cannot prove that, there is no answer but a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from twinlog.ledger.answers import Answer, How, NoAnswer, Twin
from twinlog.ledger.numbering import UNKNOWN, Numbering, Numbers, dictionary
from twinlog.ledger.spans import Hits, Ints, SpanIndex
from twinlog.model.offsets import PartitionPair, TopicPartition

COLUMNS = (
    "source_topic",
    "source_topic_id",
    "target_topic_id",
    "partition",
    "source_start",
    "target_start",
    "count",
)
"""The columns of the ledger that a translator reads."""

_HOWS = tuple(How)
_REASONS = tuple(NoAnswer)
_NONE = -1


class Translator:
    """Translates the offsets of `twins` by the ledger's rows (a table with at least COLUMNS)."""

    def __init__(self, segments: pa.Table, twins: Sequence[Twin]) -> None:
        self._twins = twins
        pairs = [twin.pair for twin in twins]
        partitions = [pair.partition for pair in pairs]
        self._by_source = Numbering([pair.source_topic for pair in pairs], partitions)
        self._by_target = Numbering([pair.target_topic for pair in pairs], partitions)
        self._by_source_id = Numbering([str(pair.source_topic_id) for pair in pairs], partitions)
        self._target_codes = {value: code for code, value in enumerate({str(p.target_topic_id) for p in pairs})}
        self._target_code = np.asarray(
            [self._target_codes[str(pair.target_topic_id)] for pair in pairs], dtype=np.int32
        )
        self._target_start = np.asarray([twin.target_start for twin in twins], dtype=np.int64)
        self._target_end = np.asarray([twin.target_end for twin in twins], dtype=np.int64)
        position = np.asarray([_NONE if twin.position is None else twin.position for twin in twins], dtype=np.int64)
        self._proven = np.full(len(twins), _NONE, dtype=np.int64)
        self._recreated = np.zeros(len(twins), dtype=bool)
        self._index(segments)
        self._has_rows = self._proven != _NONE
        # Without rows, nothing has been copied and the position is where copying will begin.
        self._proven = np.where(self._has_rows, self._proven, position)
        self._position = np.maximum(position, self._proven)

    @property
    def pairs(self) -> list[PartitionPair]:
        return [twin.pair for twin in self._twins]

    def forward(self, source: TopicPartition, offset: int) -> Answer:
        """The target offset of the first copied record at or after `offset` of `source`."""
        return answer(self.table, source, offset, reverse=False)

    def reverse(self, target: TopicPartition, offset: int) -> Answer:
        """The source offset of the first copied record at or after `offset` of `target`."""
        return answer(self.table, target, offset, reverse=True)

    def table(self, asked: pa.Table, *, reverse: bool = False) -> pa.Table:
        """`asked` (columns topic, partition, offset, and any others, which are kept), with each row's answer.

        Adds `to_topic`, `to_offset`, `how`, `reason` and `behind` as in Answer; null where there is none.
        """
        partitions = _int32(asked.column("partition"))
        offsets = _int64(asked.column("offset"))
        if np.any(offsets < 0):
            raise ValueError("offsets to translate must not be negative: a group without an offset is left out")
        numbering = self._by_target if reverse else self._by_source
        numbers = numbering.find(asked.column("topic"), partitions)
        result = (self._reverse if reverse else self._forward)(np.maximum(numbers, 0), offsets, numbers != UNKNOWN)
        topics = [twin.pair.source_topic if reverse else twin.pair.target_topic for twin in self._twins]
        names = list(dict.fromkeys(topics))
        places = {name: place for place, name in enumerate(names)}
        topic_codes = np.asarray([places[topic] for topic in topics] or [0], dtype=np.int32)
        to_topic = pa.DictionaryArray.from_arrays(
            pa.array(topic_codes[np.maximum(numbers, 0)], mask=numbers == UNKNOWN), pa.array(names, pa.string())
        )
        return (
            asked.append_column("to_topic", to_topic)
            .append_column("to_offset", pa.array(result.offset, mask=result.offset == _NONE))
            .append_column("how", _enum(result.how, _HOWS))
            .append_column("reason", _enum(result.reason, _REASONS))
            .append_column("behind", pa.array(result.behind, mask=result.behind == _NONE))
        )

    def unread(self, asked: pa.Table, *, reverse: bool = False) -> Ints:
        """How many copied records lie at or after each row's offset; `asked` has topic, partition and offset of the
        target (`reverse`: of the source). 0 for a partition that is not mirrored."""
        numbering, records = (
            (self._by_source, self._records_by_source) if reverse else (self._by_target, self._records_by_target)
        )
        numbers = numbering.find(asked.column("topic"), _int32(asked.column("partition")))
        known = np.maximum(numbers, 0)
        hits = records.find(known, _int64(asked.column("offset")))
        total = np.maximum(records.last_images(), 0)[known] if len(self._twins) else np.zeros_like(hits.image)
        return np.where((numbers != UNKNOWN) & (hits.inside | hits.after_gap), total - hits.image, 0)

    def target_starts(self, asked: pa.Table) -> Ints:
        """The target's log start for each row's topic and partition of the source; 0 where it is not mirrored."""
        numbers = self._by_source.find(asked.column("topic"), _int32(asked.column("partition")))
        starts = np.append(self._target_start, 0)
        return starts[np.where(numbers == UNKNOWN, len(self._twins), numbers)]

    @cached_property
    def _to_source(self) -> SpanIndex:
        return self._to_target.flipped()

    @cached_property
    def _records_by_target(self) -> SpanIndex:
        return self._to_source.counted()

    @cached_property
    def _records_by_source(self) -> SpanIndex:
        return self._to_target.counted()

    def _index(self, segments: pa.Table) -> None:
        partitions = _int32(segments.column("partition"))
        numbers = self._by_source_id.find(segments.column("source_topic_id"), partitions)
        values, codes = dictionary(segments.column("target_topic_id"))
        known = np.asarray([self._target_codes.get(value, UNKNOWN) for value in values] or [UNKNOWN], np.int32)
        if len(self._twins):
            numbers[known[codes] != self._target_code[numbers]] = UNKNOWN
        del codes
        self._note_recreated(segments, partitions, numbers == UNKNOWN)
        starts = _int64(segments.column("source_start"))
        counts = _int64(segments.column("count"))
        images = _int64(segments.column("target_start"))
        valid = numbers != UNKNOWN
        if not valid.all():
            numbers, starts, counts, images = numbers[valid], starts[valid], counts[valid], images[valid]
        np.maximum.at(self._proven, numbers, starts + counts)
        records = counts > 0
        if not records.all():
            numbers, starts, counts, images = numbers[records], starts[records], counts[records], images[records]
        self._to_target = SpanIndex(len(self._twins), numbers, starts, counts, images)
        self._copied_end = self._to_target.last_images()

    def _note_recreated(self, segments: pa.Table, partitions: NDArray[np.int32], stale: NDArray[np.bool_]) -> None:
        if stale.any():
            rows = pa.array(np.flatnonzero(stale))
            numbers = self._by_source.find(segments.column("source_topic").take(rows), partitions[stale])
            self._recreated[numbers[numbers != UNKNOWN]] = True

    def _forward(self, numbers: Numbers, offsets: Ints, known: NDArray[np.bool_]) -> _Result:
        result = _Result(len(offsets))
        if not known.any():
            return result
        position, proven = self._position[numbers], self._proven[numbers]
        open_ = self._refuse_unbegun(result, numbers, known)
        past = open_ & (offsets > position)
        result.refuse(past, NoAnswer.BEHIND, offsets - position)
        hits = self._to_target.find(numbers, offsets)
        open_ &= ~past
        copied_end, log_start = self._copied_end[numbers], self._target_start[numbers]
        self._settle(result, hits, open_, position - proven, np.where(copied_end < 0, log_start, copied_end))
        result.how[(result.how == _HOWS.index(How.END)) & (copied_end < 0)] = _HOWS.index(How.EMPTY)
        removed = (result.offset != _NONE) & (result.offset < log_start)
        result.give(removed, How.EXPIRED, log_start)
        return result

    def _reverse(self, numbers: Numbers, offsets: Ints, known: NDArray[np.bool_]) -> _Result:
        result = _Result(len(offsets))
        if not known.any():
            return result
        copied_end = self._copied_end[numbers]
        end = np.maximum(self._target_end[numbers], copied_end)
        open_ = self._refuse_unbegun(result, numbers, known)
        past = open_ & (offsets > end)
        result.refuse(past, NoAnswer.PAST_END, offsets - end)
        hits = self._to_source.find(numbers, offsets)
        position, proven = self._position[numbers], self._proven[numbers]
        self._settle(result, hits, open_ & ~past, position - proven, position)
        result.how[(result.how == _HOWS.index(How.END)) & (copied_end < 0)] = _HOWS.index(How.EMPTY)
        return result

    def _refuse_unbegun(self, result: _Result, numbers: Numbers, known: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Refuse partitions that have neither position nor rows; the others are left to answer."""
        begun: NDArray[np.bool_] = known & (self._position[numbers] != _NONE)
        result.refuse(known & ~begun & self._recreated[numbers], NoAnswer.RECREATED)
        return begun

    @staticmethod
    def _settle(result: _Result, hits: Hits, open_: NDArray[np.bool_], unrecorded: Ints, end: Ints) -> None:
        result.give(open_ & hits.inside, How.COPIED, hits.image)
        result.give(open_ & hits.after_gap, How.NEXT, hits.image)
        beyond = open_ & ~hits.inside & ~hits.after_gap
        # What was copied after the ledger's end is not known: its first record is not at the end of the last.
        result.refuse(beyond & (unrecorded > 0), NoAnswer.NOT_RECORDED, unrecorded)
        result.give(beyond & (unrecorded <= 0), How.END, end)


def answer(table: Callable[..., pa.Table], asked: TopicPartition, offset: int, *, reverse: bool) -> Answer:
    """One row's answer, by a translator's `table`."""
    question = pa.table({"topic": [asked.topic], "partition": [asked.partition], "offset": [offset]})
    row = table(question, reverse=reverse).to_pylist()[0]
    return Answer(
        asked,
        offset,
        None if row["to_topic"] is None else TopicPartition(row["to_topic"], asked.partition),
        row["to_offset"],
        None if row["how"] is None else How(row["how"]),
        None if row["reason"] is None else NoAnswer(row["reason"]),
        row["behind"],
        row.get("read_again"),
    )


class _Result:
    """Answers being filled in, a column each; a row that nothing was said about is not mirrored."""

    def __init__(self, rows: int) -> None:
        self.offset = np.full(rows, _NONE, dtype=np.int64)
        self.how = np.full(rows, _NONE, dtype=np.int32)
        self.reason = np.full(rows, _REASONS.index(NoAnswer.NOT_MIRRORED), dtype=np.int32)
        self.behind = np.full(rows, _NONE, dtype=np.int64)

    def give(self, rows: NDArray[np.bool_], how: How, offsets: Ints) -> None:
        self.offset[rows] = offsets[rows]
        self.how[rows] = _HOWS.index(how)
        self.reason[rows] = _NONE

    def refuse(self, rows: NDArray[np.bool_], reason: NoAnswer, behind: Ints | None = None) -> None:
        self.reason[rows] = _REASONS.index(reason)
        if behind is not None:
            self.behind[rows] = behind[rows]


def _enum(codes: NDArray[np.int32], members: Sequence[StrEnum]) -> pa.Array:
    indices = pa.array(np.maximum(codes, 0), mask=codes == _NONE)
    return pa.DictionaryArray.from_arrays(indices, pa.array([member.value for member in members], pa.string()))


def _int32(column: pa.ChunkedArray) -> NDArray[np.int32]:
    return np.asarray(column.to_numpy(), dtype=np.int32)


def _int64(column: pa.ChunkedArray) -> Ints:
    return np.asarray(column.to_numpy(), dtype=np.int64)
