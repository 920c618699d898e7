"""What becomes of a batch, decided from its header alone."""

from __future__ import annotations

from enum import Enum

from twinlog.wire.header import BatchHeader


class Verdict(Enum):
    """The fate of a source batch, and why."""

    WHOLE = "whole"
    """Goes as it is, with a new header."""

    CONTROL = "control"
    ABORTED = "aborted"
    EMPTIED = "emptied"
    """Dropped and counted: markers, aborted data, batches of which compaction left only the header."""

    HOLES = "holes"
    LOG_APPEND_TIME = "log-append-time"
    STRADDLES = "straddles"
    TOO_LARGE = "too-large"
    OLD_FORMAT = "old-format"
    """Opened and written anew, since it could not go whole for this reason."""


def judge(header: BatchHeader, *, aborted: bool, position: int, max_batch_bytes: int) -> Verdict:  # noqa: PLR0911
    """The verdict on a batch of format 2; `position` is the first offset still wanted."""
    # One return a verdict, the strongest reason first: a flat list is the plainest form of this table.
    if header.is_control:
        return Verdict.CONTROL
    if aborted:
        return Verdict.ABORTED
    if header.record_count == 0:
        return Verdict.EMPTIED
    if header.base_offset < position:
        return Verdict.STRADDLES
    if header.has_holes:
        return Verdict.HOLES
    if header.is_log_append_time:
        return Verdict.LOG_APPEND_TIME
    if header.size_bytes > max_batch_bytes:
        return Verdict.TOO_LARGE
    return Verdict.WHOLE
