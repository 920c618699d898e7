"""A migration of a flow: a cluster moved for good, phase by phase, and what is remembered of it on the target.

    settings -> backfill -> live -> proof -> cut-over plan -> switchover -> clean-up
                                           ^              |
                                           +--------------+     not now: somebody writes yet, or the two differ

Each phase can be done again from its beginning, so whoever finds the record goes on from it, on whatever machine.
While the source is backfilled its runs are the migration's own, and until the cut-over the target holds back what
would delete or compact records by their age: they came late, and are older there than they look.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from twinlog.errors import FlowStateError, SettingError
from twinlog.model.offsets import TopicPartition


class Phase(StrEnum):
    """What a migration is at; the phases before are done."""

    SETTINGS = "settings"
    """Topics, settings and permissions are made; what another mirror has left is adopted; no record is copied."""
    BACKFILL = "backfill"
    """What the source holds is copied in large runs."""
    LIVE = "live"
    """The flow keeps up by its ordinary runs."""
    PROOF = "proof"
    """Both logs are compared."""
    CUT_OVER = "cut-over plan"
    """They are equal; where each group would go on is known, and somebody is to approve it."""
    SWITCHOVER = "switchover"
    """It was approved and is being done."""
    CLEAN_UP = "clean-up"
    """Applications are on the target. What is left of Twinlog there may be removed."""


ALLOWED = {
    Phase.SETTINGS: {Phase.BACKFILL},
    Phase.BACKFILL: {Phase.LIVE},
    Phase.LIVE: {Phase.PROOF},
    Phase.PROOF: {Phase.CUT_OVER},
    Phase.CUT_OVER: {Phase.SWITCHOVER},
    Phase.SWITCHOVER: {Phase.CLEAN_UP, Phase.CUT_OVER},
    Phase.CLEAN_UP: set[Phase](),
}
_FILLING = frozenset({Phase.SETTINGS, Phase.BACKFILL})


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration as the target keeps it, beside the flow's state."""

    id: str
    phase: Phase = Phase.SETTINGS
    started_at_ms: int = 0
    from_ms: int | None = None
    """Copy what is stamped with this time or later: from each partition's first such record on."""
    from_offsets: tuple[tuple[str, int, int], ...] = ()
    """The same for some partitions, by topic, number and offset; these win."""
    priority: tuple[str, ...] = ()
    """Patterns of the source's topics, the most urgent first."""
    blackouts: tuple[str, ...] = ()
    """When nothing is backfilled, as people wrote it."""
    adopts: str | None = None
    """Which mirror's copy is gone on with."""
    holding: bool = False
    """Retention and cleaning are held back on the target."""
    positioned: bool = False
    """Every partition has its position, be it only the one to begin at."""
    bytes: int = 0
    """Backfilled so far."""
    found: tuple[str, ...] = ()
    """Topics of names that other mirrors use too and that were there before: they are not ours to remove."""

    def moved_to(self, phase: Phase, flow: str) -> Migration:
        """The record in another phase, if that one may follow."""
        if phase is not self.phase and phase not in ALLOWED[self.phase]:
            allowed = ", ".join(sorted(ALLOWED[self.phase])) or "nothing"
            raise FlowStateError(
                f"the migration of {flow} is at its {self.phase}, which {phase} can't follow; from here may follow: "
                f"{allowed}"
            )
        return replace(self, phase=phase)

    @property
    def fills(self) -> bool:
        """Runs that are not the migration's own have to wait."""
        return self.phase in _FILLING

    @property
    def is_cut_over(self) -> bool:
        return self.phase is Phase.CLEAN_UP

    def begins(self) -> dict[TopicPartition, int]:
        """Where partitions begin of which an offset was named."""
        return {TopicPartition(topic, number): offset for topic, number, offset in self.from_offsets}

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def named_beginning(text: str) -> tuple[TopicPartition, int]:
    """Where a partition is to begin, as people write it: `orders:0:1200`. SettingError for a text that is none."""
    topic, _, place = text.partition(":")
    number, _, offset = place.partition(":")
    if not (topic and number.isdecimal() and offset.isdecimal()):
        raise SettingError(f'expected TOPIC:PARTITION:OFFSET, such as orders:0:1200, not "{text}"')
    return TopicPartition(topic, int(number)), int(offset)


def from_json(said: Mapping[str, Any]) -> Migration:
    """What `to_json` said; fields that a newer twinlog added are left alone. TypeError or ValueError for all else."""
    known = {name: said[name] for name in Migration.__dataclass_fields__ if name in said}
    known["phase"] = Phase(known.get("phase", Phase.SETTINGS))
    for name in ("priority", "blackouts", "found"):
        known[name] = tuple(known.get(name, ()))
    known["from_offsets"] = tuple(
        (str(topic), int(number), int(offset)) for topic, number, offset in known.get("from_offsets", ())
    )
    return Migration(**known)


def to_value(migration: Migration | None) -> bytes:
    """As it is kept."""
    return json.dumps(None if migration is None else migration.to_json()).encode()
