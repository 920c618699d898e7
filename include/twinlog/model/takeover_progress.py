"""How far a takeover has come, as the target remembers it.

    1 stop      the flow is failed over, its writers are fenced
    2 record    the ledger holds everything that was copied
    3 groups    the groups' offsets are committed and were read back
    4 promote   settings and permissions of the topics that take the source's place
    5 announce  hooks have been called

Each step may be taken twice and comes to the same, and each is noted once it is whole. Whoever finds one that is not
goes on there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from twinlog.model.takeover import Kind


class Step(IntEnum):
    """The steps in their order."""

    STOP = 1
    RECORD = 2
    GROUPS = 3
    PROMOTE = 4
    ANNOUNCE = 5


@dataclass(frozen=True, slots=True)
class Takeover:
    """One takeover of a flow."""

    plan: str
    """The id of its plan, which is kept beside the ledger."""
    kind: Kind
    started_at_ms: int
    done: int = 0
    """The last step that is whole; 0 before the first."""
    ended_at_ms: int = 0
    """When the last one was; 0 while there are more to take."""

    @property
    def ended(self) -> bool:
        return self.ended_at_ms > 0

    def after(self, step: Step, now_ms: int) -> Takeover:
        """What is remembered when `step` is whole."""
        done = max(self.done, int(step))
        ended = now_ms if step is Step.ANNOUNCE and not self.ended else self.ended_at_ms
        return replace(self, done=done, ended_at_ms=ended)

    def to_json(self) -> dict[str, Any]:
        return {
            "plan": self.plan,
            "kind": str(self.kind),
            "started_at_ms": self.started_at_ms,
            "done": self.done,
            "ended_at_ms": self.ended_at_ms,
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Takeover:
        return cls(
            str(said["plan"]),
            Kind(said["kind"]),
            int(said["started_at_ms"]),
            int(said["done"]),
            int(said["ended_at_ms"]),
        )
