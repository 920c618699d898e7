"""What becomes of a group's position on the target: written, left as it is, or not known, and why.

    source commit  --translated-->  record, the intent  -->  committed offset on the target  -->  record, confirming

What always holds:
- a position that the group made itself on the target is never moved back; one that is ours follows the source in
  either direction, so a rewind there is a rewind here;
- the last record of a group and partition says which offsets on the target are ours. An intent names the one that we
  found there, if that was ours, and the one that we are about to commit, so whoever dies in between leaves an offset
  that the next pass recognises; the confirmation names the committed one alone. Records that nothing is committed for
  add none. An offset with a leader epoch is never ours: we commit none, and consumers that read a record commit its;
- where the translation is not proven there is no checkpoint but a reason.

What can't be told apart: a group that commits, without an epoch, exactly the offset that we committed, or that a pass
which died was about to commit. It has then not moved from where we meant it to be, and goes on following the source.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

NO_LEADER_EPOCH = -1

DRILL = ".drill"
"""What the name of a drill's shadow group ends with."""

_OWN_GROUP = re.compile(r"twinlog\..+->.+")


class Reason(StrEnum):
    """Why a group, or one of its partitions, was not checkpointed, or not committed on the target."""

    NO_COMMIT = "no commit"
    """The group has committed nothing on the source; `translate --at` finds offsets by time."""
    SHARE_GROUP = "share group: positions live in the broker and can't be moved"
    AHEAD = "ahead of the mirror"
    """The group has read further than the mirror has copied, and goes on at the end of the copy."""
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
    MOVED = "moved on target meanwhile"
    """The group's offset there changed while we were about to write it; the next pass looks again."""
    LONG_METADATA = "metadata of the commit too long for a checkpoint"


OF_ANOTHER_FLOW = frozenset({Reason.CAME_FROM_TARGET})
"""Nothing that this flow mirrors: a group that moves reads the original on the target, from its own position there."""
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
    """The last record of one group and partition in the checkpoints topic."""

    last: Checkpoint
    written_ms: int
    ours: frozenset[int]
    """The offsets on the target that are ours if the group's committed one is among them."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be written for one group and partition, and where the group will go on."""

    record: bool
    """To the checkpoints topic."""
    commit: bool
    """As the group's committed offset on the target."""
    offset: int | None
    """Where the group goes on, on the target; None where that is up to its members, who have committed nothing yet."""
    reason: Reason | None = None
    """Why nothing is committed although there is a checkpoint."""
    kept: frozenset[int] = frozenset()
    """The offset that is on the target now, if it is ours."""
    ours: frozenset[int] = frozenset()
    """What the record names as ours."""


def decide(
    wanted: Checkpoint,
    written: Written | None,
    there: Commit | None,
    *,
    active: bool,
    renew_before_ms: int,
    sync: bool = True,
) -> Decision:
    """`there` is the group's own committed offset on the target, `active` whether it has members there, `sync` whether
    the flow commits what is due.

    Brokers forget the offsets of a group without members some time after they were committed: what was written
    before `renew_before_ms` is written again.
    """
    old = written is not None and written.written_ms < renew_before_ms
    commit, offset, reason = _position(wanted, written, there, active=active, old=old)
    kept = frozenset({there.offset}) if there is not None and is_ours(there, written) else frozenset()
    ours = kept | {wanted.downstream} if commit and sync else kept
    record = old or written is None or (written.last, written.ours) != (wanted, ours)
    return Decision(record, commit, offset, reason, kept, ours)


def _position(
    wanted: Checkpoint, written: Written | None, there: Commit | None, *, active: bool, old: bool
) -> tuple[bool, int | None, Reason | None]:
    """Whether to commit, where the group goes on, and why nothing is committed."""
    if active:
        return False, None if there is None else there.offset, Reason.ACTIVE
    if there is None:
        return True, wanted.downstream, None
    if not is_ours(there, written) and there.offset >= wanted.downstream:
        return False, there.offset, Reason.OWN_POSITION if there.offset > wanted.downstream else None
    same = (there.offset, there.metadata) == (wanted.downstream, wanted.metadata)
    return old or not same, wanted.downstream, None


def is_ours(there: Commit, written: Written | None) -> bool:
    """Whether we committed this, and not the group."""
    return written is not None and there.leader_epoch == NO_LEADER_EPOCH and there.offset in written.ours


def is_position_group(group: str) -> bool:
    """Whether a flow keeps its positions under this name; such groups are never checkpointed."""
    return _OWN_GROUP.fullmatch(group) is not None


def is_own_group(group: str) -> bool:
    """Whether Twinlog made this group for itself: for a flow's positions, or for a drill."""
    return is_position_group(group) or group.endswith(DRILL)


def checkpoints_transactional_id(flow: str) -> str:
    """Under which a flow writes its checkpoints."""
    return f"twinlog.{flow}.checkpoints"
