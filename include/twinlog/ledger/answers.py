"""What a translation can say: an offset and how it was found, or none and the reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from twinlog.model.offsets import PartitionPair, TopicPartition


class How(StrEnum):
    """How an offset was found."""

    COPIED = "copied"
    """It is this very record's offset on the other side."""
    NEXT = "next copied"
    """The record itself was not copied (a marker, an aborted, removed or filtered one): the next one that was."""
    END = "end"
    """All that was copied lies before: the offset after the last copied record."""
    EMPTY = "empty"
    """The partition is mirrored and nothing has been copied yet: the log's start."""
    EXPIRED = "expired on target"
    """The record was copied and the target's retention has removed it since: the target's log start."""
    FIRST_UNREAD = "first unread"
    """One name is mirrored both ways: the first record on the other side that was not read on this one."""


class NoAnswer(StrEnum):
    """Why there is no offset."""

    NOT_MIRRORED = "not mirrored"
    """The flow has not begun with this partition."""
    RECREATED = "recreated"
    """What was copied belongs to an earlier topic of this name, on one side or the other."""
    BEHIND = "mirror behind"
    """The offset lies past the position: `behind` offsets have not been copied yet."""
    NOT_RECORDED = "ledger behind"
    """The ledger ends `behind` offsets before the position: recording is to be run first."""
    PAST_END = "past end"
    """The offset lies `behind` offsets past the end of the target's log."""


@dataclass(frozen=True, slots=True)
class Twin:
    """A mirrored partition as it is now. Read the position first, then go through the barrier for the rest:
    then the ledger holds every row that the position vouches for."""

    pair: PartitionPair
    """With the ids that both topics have now."""
    position: int | None
    """The next source offset to copy; None where no position with these ids has been committed."""
    target_start: int
    """The target's log start."""
    target_end: int
    """The target's last stable offset, behind the barrier."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The translation of one offset: either `offset` and `how`, or `reason`."""

    asked: TopicPartition
    asked_offset: int
    given: TopicPartition | None
    """The partition on the other side; None where the flow does not know this one."""
    offset: int | None
    how: How | None
    reason: NoAnswer | None
    behind: int | None
    """How many offsets are missing, where that is the reason."""
    read_again: int | None = None
    """How many records a reader meets twice, where one name is mirrored both ways."""

    @property
    def message(self) -> str:
        """One sentence for people."""
        what = f"{self.asked} at {self.asked_offset}"
        if self.offset is not None:
            again = f"; {self.read_again:,} records are read again" if self.read_again else ""
            return f"{what} is {self.given} at {self.offset} ({self.how}){again}"
        reasons = {
            NoAnswer.NOT_MIRRORED: "has no answer: nothing of this partition has been mirrored yet",
            NoAnswer.RECREATED: "has no answer: what was mirrored belongs to an earlier topic of this name",
            NoAnswer.BEHIND: f"has no answer yet: the mirror is {self.behind} records behind it",
            NoAnswer.NOT_RECORDED: f"has no answer yet: the ledger is {self.behind} offsets behind the position; "
            "run the recording first",
            NoAnswer.PAST_END: f"has no answer: it lies {self.behind} offsets past the end of the log",
        }
        if self.reason is None:
            raise ValueError(f"{what}: an answer without an offset needs a reason")
        return f"{what} {reasons[self.reason]}"
