"""The position: the next source offset to copy, as it is kept on the target.

It is a committed offset of the flow's own group on the *target* topic, with these words as its metadata:

    2 <source topic id> <target topic id> <source leader epoch> <target end> <seen end>

Version 1, which is still read, lacks the last word. A position holds only while both ids are the current ones. Deleting
the target topic makes the broker forget it, which is right: a topic made anew starts anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from twinlog.errors import PositionFormatError

VERSION = "2"
_WITHOUT_SEEN_END = "1"

NO_LEADER_EPOCH = -1


@dataclass(frozen=True, slots=True)
class Position:
    """How far one partition has been copied."""

    offset: int
    """The next source offset to copy."""
    source_topic_id: UUID
    target_topic_id: UUID
    leader_epoch: int
    """The source leader's epoch of the last copied batch: tells a truncated log from one that only grew."""
    target_end: int
    """The target offset after the last copied record; the target's log never ends below it."""
    seen_end: int
    """How far the source was known to be ready, which is never before `offset`. Should the source topic go, then
    what lies between the two is known to be lost."""

    def __post_init__(self) -> None:
        if self.seen_end < self.offset:
            raise ValueError(f"a source that was seen up to {self.seen_end} can't have been copied up to {self.offset}")

    def metadata(self) -> str:
        return (
            f"{VERSION} {self.source_topic_id} {self.target_topic_id} {self.leader_epoch} {self.target_end} "
            f"{self.seen_end}"
        )


def parse(offset: int, metadata: str, where: str) -> Position:
    """A committed offset as a position; `where` (cluster, group, partition) goes into the error if it is none."""
    words = metadata.split(" ")
    if words[0] == _WITHOUT_SEEN_END and len(words) == 5:
        words.append(str(offset))
    elif words[0] != VERSION or len(words) != 6:
        raise PositionFormatError(
            f"{where}: the committed offset's metadata {metadata!r} is not a position of this twinlog's version; "
            "was the group written to by something else, or by a newer twinlog?"
        )
    try:
        return Position(offset, UUID(words[1]), UUID(words[2]), int(words[3]), int(words[4]), int(words[5]))
    except ValueError as wrong:
        raise PositionFormatError(f"{where}: damaged position {metadata!r}: {wrong}") from wrong
