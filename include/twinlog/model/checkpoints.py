"""What becomes of a group's position on the target: written, left as it is, or not known, and why.

    source commit  --translated-->  checkpoint record (the intent)  -->  the group's committed offset on the target

What always holds:
- a position that the group made itself on the target is never moved back; one that is ours follows the source in
  either direction, so a rewind there is a rewind here;
- ours is what equals a checkpoint still in the checkpoints topic and has no leader epoch, since we commit none and
  consumers that read a record commit its epoch. The record is written before the offset, so whoever dies in between
  leaves an offset that the next one recognises;
- where the translation is not proven there is no checkpoint but a reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

NO_LEADER_EPOCH = -1

_OWN_GROUP = re.compile(r"twinlog\..+->.+")


class Reason(StrEnum):
    """Why a group, or one of its partitions, was not checkpointed, or not committed on the target."""

    NO_COMMIT = "no commit"
    """The group has committed nothing on the source; `translate --at` finds offsets by time."""
    SHARE_GROUP = "share group: positions live in the broker and can't be moved"
    AHEAD = "ahead of the mirror"
    """The group has read further than the mirror has copied."""
    NOT_TAKEN = "topic not taken by the flow"
    CAME_FROM_TARGET = "topic came from the target"
    NO_TWIN = "topic not mirrored yet"
    RECREATED = "topic recreated"
    NOT_RECORDED = "ledger behind the mirror"
    BOTH_WAYS = "mirrored both ways under one name"
    """No single offset means the same set of records on both sides."""
    NOT_AUTHORIZED = "not authorised"
    UNREADABLE = "offsets can't be read"
    REFUSED = "refused"
    ACTIVE = "active on target"
    """The group has members there and goes on by itself."""
    OWN_POSITION = "own newer position on target"
    """The group has read further there than on the source."""


IN_USE = frozenset({Reason.ACTIVE, Reason.OWN_POSITION})
"""The group is on the target already: nothing is written, and it needs nothing."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A committed offset as a coordinator keeps it."""

    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    """What the group's own client keeps there; Kafka Streams does."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A position on the source and the one on the target that means the same."""

    upstream: int
    downstream: int
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """What the checkpoints topic holds of one group and partition."""

    last: Checkpoint
    written_ms: int
    downstreams: frozenset[int]
    """Of all checkpoints that compaction has left, the last one's included."""

    def followed_by(self, checkpoint: Checkpoint, written_ms: int) -> Written:
        return Written(checkpoint, written_ms, self.downstreams | {checkpoint.downstream})


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be written for one group and partition, and where the group will go on."""

    record: bool
    """To the checkpoints topic."""
    commit: bool
    """As the group's committed offset on the target."""
    offset: int
    """Where the group goes on, on the target."""
    reason: Reason | None = None
    """Why nothing is committed although there is a checkpoint."""


def decide(
    wanted: Checkpoint, written: Written | None, there: Commit | None, *, active: bool, renew_before_ms: int
) -> Decision:
    """`there` is the group's own committed offset on the target, `active` whether it has members there.

    Brokers forget the offsets of a group without members some time after they were committed: what was written
    before `renew_before_ms` is written again.
    """
    old = written is not None and written.written_ms < renew_before_ms
    record = written is None or written.last != wanted or old
    if active:
        return Decision(record, False, wanted.downstream if there is None else there.offset, Reason.ACTIVE)
    if there is None:
        return Decision(record, True, wanted.downstream)
    ours = is_ours(there, written)
    if not ours and there.offset >= wanted.downstream:
        further = Reason.OWN_POSITION if there.offset > wanted.downstream else None
        return Decision(record, False, there.offset, further)
    same = (there.offset, there.metadata) == (wanted.downstream, wanted.metadata)
    return Decision(record, old or not same, wanted.downstream)


def is_ours(there: Commit, written: Written | None) -> bool:
    """Whether we committed this, and not the group."""
    return written is not None and there.leader_epoch == NO_LEADER_EPOCH and there.offset in written.downstreams


def is_position_group(group: str) -> bool:
    """Whether a flow keeps its positions under this name; such groups are never checkpointed."""
    return _OWN_GROUP.fullmatch(group) is not None


def checkpoints_transactional_id(flow: str) -> str:
    """Under which a flow writes its checkpoints."""
    return f"twinlog.{flow}.checkpoints"
