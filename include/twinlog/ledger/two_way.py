"""Translation where one name is mirrored both ways: the two logs interleave differently.

    nyc    a  b  x  c  y          a b c written at nyc, x y at lon
    lon    x  a  y  b  c          each came to the other side by its own flow

A group that has read `a b x` at nyc has read, at lon, the offsets 0, 1 and 3: no single offset says that. The answer is
that of the first record it has *not* read, `y` at 2, so that nothing is skipped; how many it will read again (`b`) is
counted. What a group has not read is, on the other side,

- the copy of the first record written here that it has not read: the flow's own ledger knows;
- the original of the first record written there that it has not read: the ledger of the way back knows;
- whatever was written there and has not come here at all. It lies beyond the way back's position, and what else lies
  there is taken for unread with it. A way back that has ended, as the one of a failback has, leaves nothing behind:
  all that was written there has come, and what lies beyond its position is what was mirrored since.

The way back is to be read before the flow itself: read later, it may have passed over copies that the other knows
nothing of yet.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from twinlog.ledger.answers import Answer, How, Twin
from twinlog.ledger.pairs import recorded_pairs
from twinlog.ledger.spans import Ints
from twinlog.ledger.store import Ledger
from twinlog.ledger.translate import COLUMNS, Translator, answer
from twinlog.model.offsets import TopicPartition

_NOWHERE = np.int64(-1)
_NO_END = 2**62
"""Of a log that is not asked."""


class TwoWayTranslator:
    """Translates between two clusters by both flows' translators."""

    def __init__(self, onward: Translator, back: Translator, *, back_has_ended: bool = False) -> None:
        """`back` is of the flow from this one's target to its source."""
        self._onward = onward
        self._back = back
        self._back_has_ended = back_has_ended

    def forward(self, source: TopicPartition, offset: int) -> Answer:
        """The target offset of the first record that whoever stands at `offset` of `source` has not read."""
        return answer(self.table, source, offset, reverse=False)

    def reverse(self, target: TopicPartition, offset: int) -> Answer:
        """The source offset of the first record that whoever stands at `offset` of `target` has not read."""
        return answer(self.table, target, offset, reverse=True)

    def table(self, asked: pa.Table, *, reverse: bool = False) -> pa.Table:
        """As Translator.table does, with `read_again`: how many records a group that goes on there reads twice."""
        onward, back = (self._back, self._onward) if reverse else (self._onward, self._back)
        copies = onward.table(asked)
        known = np.asarray(copies.column("to_offset").is_valid())
        ours = _offsets(copies)
        originals = back.table(asked, reverse=True)
        theirs = _offsets(originals)
        # A way back that has not begun with the partition has brought nothing: all of the other side is unread.
        starts = onward.target_starts(asked)
        theirs = np.where(theirs == _NOWHERE, starts, theirs)
        # Where every copy has been read, the next one will be put behind all that is there now.
        all_read = _at_end(copies)
        unread = np.where(all_read, theirs, np.minimum(ours, theirs))
        if self._back_has_ended and not reverse:
            nothing_left = _at_end(originals) | ~np.asarray(originals.column("to_offset").is_valid())
            unread = np.where(nothing_left, np.where(all_read, np.maximum(ours, theirs), ours), unread)
        first = np.maximum(unread, starts)
        again = (
            onward.unread(_at(asked, first))
            - onward.unread(_at(asked, np.maximum(ours, first)))
            + back.unread(_at(asked, first), reverse=True)
            - back.unread(_at(asked, np.maximum(theirs, first)), reverse=True)
        )
        how = pc.if_else(pa.array(known & (first != ours)), How.FIRST_UNREAD.value, copies.column("how").cast("string"))
        how = pc.if_else(pa.array(known & (unread < starts)), How.EXPIRED.value, how)
        place = copies.schema.get_field_index
        return (
            copies.set_column(place("to_offset"), "to_offset", pa.array(first, mask=~known))
            .set_column(place("how"), "how", how)
            .append_column("read_again", pa.array(again, mask=~known))
        )


class RecordedWay:
    """The way back by its ledger alone, since the cluster that it writes to may be gone; read when this is made.

    What came home after the last recording is then taken for unread: it is read again, and nothing is skipped.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._rows = ledger.read(COLUMNS)
        self._pairs, _ = recorded_pairs(ledger)

    def opposite(self, onward: Translator) -> Translator:
        """The translator of those pairs that are `onward`'s the other way round."""
        ids = {(pair.target_topic_id, pair.source_topic_id) for pair in onward.pairs}
        current = [pair for pair in self._pairs if (pair.source_topic_id, pair.target_topic_id) in ids]
        return Translator(self._rows, [Twin(pair, None, 0, _NO_END) for pair in current])


def _offsets(answers: pa.Table) -> Ints:
    return np.asarray(answers.column("to_offset").fill_null(int(_NOWHERE)), dtype=np.int64)


def _at_end(answers: pa.Table) -> NDArray[np.bool_]:
    """Which of the answers lie behind every record that the translator knows."""
    return np.asarray(
        pc.is_in(answers.column("how"), value_set=pa.array([How.END, How.EMPTY], pa.string())).fill_null(False)
    )


def _at(asked: pa.Table, offsets: Ints) -> pa.Table:
    return pa.table({"topic": asked.column("topic"), "partition": asked.column("partition"), "offset": offsets})
