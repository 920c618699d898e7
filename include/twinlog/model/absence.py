"""Why a record that one log has may be gone from the other: retention, or the log cleaner, or no good reason at all.

A log start above the record is retention's work only where retention explains it. On the source nobody needs to explain
himself: whoever owns the data may delete it, and the copy still has what was copied. On the target only the topic's own
settings may, so records that somebody deletes by hand there are missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from twinlog.model.record_comparison import RecordFact

CLOCKS_APART_MS = 60_000


class Reason(Enum):
    """Why a record is not there."""

    EXPIRED = "expired"
    DELETED = "deleted"
    """Removed from the start of the log, and not by retention."""
    COMPACTED = "compacted"
    LATER_KEY_NEEDED = "later key needed"
    """The log cleaner may have removed it, if a later record has its key: that is still to be looked up."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class LogRules:
    """How a log may lose records."""

    start: int
    """Where the log starts now."""
    compacts: bool
    expires: bool
    """Whether its policy deletes at all."""
    retention_ms: int | None
    """None where age alone removes nothing."""
    by_size: bool
    """Whether its size may have made records go."""
    any_deletion: bool
    """Nobody is asked why the log starts where it does: the source."""

    def why_absent(self, offset: int, other: RecordFact, *, now_ms: int) -> Reason:
        """Why this log has no record at `offset`, where the other side still has `other`."""
        if offset < self.start:
            explained = self.any_deletion or self.may_have_expired(other.timestamp_ms, now_ms)
            return Reason.EXPIRED if explained else Reason.DELETED
        if not self.compacts:
            return Reason.NONE
        # The cleaner removes records without a key, and tombstones once they have been there for long enough.
        return Reason.COMPACTED if other.key is None or other.value is None else Reason.LATER_KEY_NEEDED

    def may_have_expired(self, newest_ms: int, now_ms: int) -> bool:
        """Whether retention can have removed records of which the newest is from `newest_ms`."""
        if not self.expires:
            return False
        if self.by_size or newest_ms < 0:
            return True
        return self.retention_ms is not None and newest_ms < now_ms - self.retention_ms + CLOCKS_APART_MS
