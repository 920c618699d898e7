"""What a run noticed and does not pass over in silence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from twinlog.model.offsets import TopicPartition


class FindingKind(StrEnum):
    """What is wrong with one partition."""

    EXPIRED = "expired"
    """Retention on the source overtook the position."""
    RECREATED = "recreated"
    """The source topic is another one of the same name, or gone."""
    TRUNCATED = "truncated"
    """The source lost records that had been copied, in an unclean leader election."""
    TARGET_REPLACED = "target replaced"
    """The target topic is another one, or was cut below what had been copied."""
    TARGET_MISSING = "target missing"
    """There is no target topic, or it has too few partitions."""
    FOREIGN = "foreign"
    """Somebody else writes to the target topic."""
    TOO_LARGE = "too large"
    """A record is larger than the target accepts."""
    CORRUPT = "corrupt"
    """Bytes from the source do not pass their checksum."""
    NOT_ALLOWED = "not allowed"
    """An ACL is missing."""
    HELD_BACK = "held back"
    """A transaction that is open on the source keeps records from being copied."""
    REFUSED = "refused"
    """A broker answered an error that has no name of its own here."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about one partition that people must know; the message is a whole sentence."""

    kind: FindingKind
    partition: TopicPartition
    offset: int
    message: str
