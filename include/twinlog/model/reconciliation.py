"""What reconciliation can say of a record, a range, a ledger or a setting: nothing it looks at stays unclassified."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """The answer to the one question: is the twin equal?"""

    EQUAL = "equal"
    DIFFERENT = "different"


class Kind(StrEnum):
    """What was found. Those in `ALLOWED` are as it should be, and are only counted."""

    EQUAL = "equal"
    EXPIRED = "expired"
    """Retention has removed it on one side, or on both."""
    COMPACTED = "compacted"
    """A log cleaner has removed it on one side, or on both: checked against the later record of its key."""
    RECOVERED = "recovered"
    """Missing on the twin, and appended to a topic of its own beside it by a repair."""
    LOCAL = "local"
    """Written by somebody else on a target that others may write to: one name, mirrored both ways."""
    MISSING = "missing"
    """The source has it, and the target should."""
    EXTRA = "extra"
    """The target has it among the copied records, and the source does not."""
    ALTERED = "altered"
    OUT_OF_ORDER = "out of order"
    MISPLACED = "misplaced"
    """The right record in the right order, at another target offset than the ledger says: translation is wrong."""
    DOUBLED = "doubled"
    FOREIGN = "foreign"
    """Written by somebody else on the target."""
    HOLE = "hole"
    """Source offsets that the ledger accounts for not once: no row, or more than one."""
    LEDGER = "ledger"
    """What the ledger keeps is not what the journal says."""
    UNREADABLE = "unreadable"
    """Could not be compared, since a log could not be read."""
    SETTING = "setting"
    PARTITIONS = "partitions"
    PERMISSION = "permission"
    GROUP = "group"
    """A checkpoint says another offset than the ledger does."""


ALLOWED = frozenset({Kind.EQUAL, Kind.EXPIRED, Kind.COMPACTED, Kind.RECOVERED, Kind.LOCAL})


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs. `count` records in a row from these offsets on; where there is no record on a side, None."""

    kind: Kind
    topic: str | None = None
    """The source's."""
    partition: int | None = None
    source_offset: int | None = None
    target_offset: int | None = None
    detail: str = ""
    count: int = 1

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "kind": self.kind.value}


@dataclass(frozen=True, slots=True)
class Account:
    """Source offsets, from the first that was copied to the position, and what became of them: `records` and gaps and
    `holes` and what was `dropped`, less what is accounted for `twice`, add up to `offsets`."""

    offsets: int = 0
    records: int = 0
    """That the ledger maps to records of the target."""
    gaps: int = 0
    """Without a record on the target, for a reason that the ledger names."""
    holes: int = 0
    """Of which the ledger says nothing, and should."""
    twice: int = 0
    dropped: int = 0
    """Of which the ledger says nothing any more, since the source's log has dropped them."""

    @property
    def adds_up(self) -> bool:
        return self.offsets == self.records + self.gaps + self.holes + self.dropped - self.twice


NOTHING_COPIED = Account()


def joined(found: Iterable[Difference]) -> list[Difference]:
    """Differences of neighbouring records as one, where nothing else tells them apart."""
    together: list[Difference] = []
    for one in found:
        if together and _runs_on(together[-1], one):
            together[-1] = replace(together[-1], count=together[-1].count + one.count)
        else:
            together.append(one)
    return together


def _runs_on(first: Difference, second: Difference) -> bool:
    return (
        (first.kind, first.topic, first.partition, first.detail)
        == (second.kind, second.topic, second.partition, second.detail)
        and first.topic is not None
        and _follows(first.source_offset, first.count, second.source_offset)
        and _follows(first.target_offset, first.count, second.target_offset)
        and (first.source_offset is not None or first.target_offset is not None)
    )


def _follows(start: int | None, count: int, after: int | None) -> bool:
    return after is None if start is None else after == start + count
