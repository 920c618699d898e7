"""The plan of a takeover: where every group goes on, on the target, what is lost, and what is changed there.

A plan is made before anything is changed, kept as JSON beside the ledger, shown to whoever approves it, and carried out
as it stands; `from_json` undoes `to_json`. What always holds: of every group that the flow takes, each partition that
is known of it has a row with an offset or is left out with its reason.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass, field, fields
from enum import StrEnum
from typing import Any, NamedTuple

from twinlog.errors import ConfigurationError
from twinlog.model.acls import Acl, acl_of
from twinlog.model.sync_plan import Change
from twinlog.model.twin_settings import SettingChange

VERSION = 1


class Kind(StrEnum):
    """Which of the two a takeover is."""

    FAILOVER = "failover"
    """The source is gone, or is treated so: nothing is asked of it that could hold anything up."""
    SWITCHOVER = "switchover"
    """The source is alive: everything is copied first, and that is proven."""


class Strategy(StrEnum):
    """Where a group goes on."""

    TRANSLATED = "translated"
    """Where it stopped on the source, by the ledger."""
    TIMESTAMP = "timestamp"
    """At the first record of a time or later."""
    EARLIEST = "earliest"
    """At the first record that the target has."""
    LATEST = "latest"
    """Behind the last record that the target has."""


class How(StrEnum):
    """How an offset was found, beside the words of a translation (`twinlog.ledger.answers.How`)."""

    BY_TIME = "by time"
    EARLIEST = "earliest"
    LATEST = "latest"
    CHECKPOINT = "checkpoint"
    """As it was translated when the source was still there."""
    END_OF_COPY = "end of copy"
    """The group had read further than was copied: it has read all that is there."""


def override_of(text: str) -> tuple[str, Strategy]:
    """Another strategy for some groups, as people write it: `billing-.*=earliest`."""
    pattern, separator, name = text.rpartition("=")
    names = [str(strategy) for strategy in Strategy]
    if not separator or name not in names:
        raise ConfigurationError(f'expected a pattern, "=" and one of {", ".join(names)}, not "{text}"')
    return pattern, Strategy(name)


@dataclass(frozen=True)
class Request:
    """What somebody asks of a takeover."""

    strategy: Strategy = Strategy.TRANSLATED
    overrides: tuple[tuple[str, Strategy], ...] = ()
    """Strategies of some groups by a pattern of their names; the first that matches holds."""
    at_ms: int | None = None
    margin_ms: int = 0
    """So much before `at_ms`, since clocks differ and stamps are not in order."""
    groups: str | None = None
    """A pattern of the groups that are moved; None for all that the flow takes."""
    over_own_positions: bool = False
    """Whether a newer position that a group made on the target itself is written over."""

    def __post_init__(self) -> None:
        for pattern in (*(pattern for pattern, _ in self.overrides), *([self.groups] if self.groups else [])):
            try:
                re.compile(pattern)
            except re.error as wrong:
                raise ConfigurationError(f'"{pattern}" is no pattern of group names: {wrong}') from wrong
        by_time = Strategy.TIMESTAMP in (self.strategy, *(strategy for _, strategy in self.overrides))
        if by_time and self.at_ms is None:
            raise ConfigurationError("the strategy timestamp needs a time; say which with --at")
        if self.at_ms is not None and not by_time:
            raise ConfigurationError(
                "a time (--at) is for the strategy timestamp; ask for that, for all or for a group"
            )

    def strategy_of(self, group: str) -> Strategy:
        for pattern, strategy in self.overrides:
            if re.fullmatch(pattern, group):
                return strategy
        return self.strategy

    def takes(self, group: str) -> bool:
        return self.groups is None or re.fullmatch(self.groups, group) is not None

    @property
    def from_ms(self) -> int | None:
        """The time that offsets are looked up by."""
        return None if self.at_ms is None else max(0, self.at_ms - self.margin_ms)


class GroupStart(NamedTuple):
    """One group on one partition of the target. A tuple, since there may be a million."""

    group: str
    topic: str
    partition: int
    offset: int
    """Where it goes on."""
    how: str
    unread: int | None = None
    """Copied records at or after the offset."""
    read_again: int = 0
    commit: bool = True
    """Whether the offset is to be committed; not where the group is there already, on its own."""
    seen: int | None = None
    """What the group has committed there, of what may be written over; None where that is nothing."""
    metadata: str = ""
    """What the group's own client keeps beside its offset."""


class GroupLeftOut(NamedTuple):
    """A group, or one of its partitions, that can't be moved."""

    group: str
    reason: str
    topic: str | None = None
    """On the source."""
    partition: int | None = None
    behind: int | None = None


@dataclass(frozen=True, slots=True)
class TopicLoss:
    """What of a topic of the source was not copied."""

    topic: str
    twin: str
    records: int | None
    """Counted in offsets; None where nobody knows."""
    seconds: float | None


@dataclass(frozen=True)
class TakeoverPlan:
    """Everything that a takeover is going to do."""

    id: str
    """Sorts by time."""
    kind: Kind
    flow: str
    source: str
    target: str
    made_at_ms: int
    request: Request
    rows: tuple[GroupStart, ...] = ()
    left_out: tuple[GroupLeftOut, ...] = ()
    losses: tuple[TopicLoss, ...] = ()
    """Of the topics that lose something, or of which it is not known."""
    lost_records: int | None = None
    lost_seconds: float | None = None
    lost_note: str | None = None
    """By what the loss is known, or why it is not, in a sentence."""
    bootstrap_servers: str = ""
    """Where clients find the target."""
    topics: Mapping[str, str] = field(default_factory=dict)
    """What each mirrored topic of the source is called on the target."""
    promoted: tuple[str, ...] = ()
    """The topics of the target that take the source's place, so that producers write to them."""
    settings: tuple[SettingChange, ...] = ()
    """Of promoted topics: back to what the source's have."""
    acls: tuple[Acl, ...] = ()
    """To be granted on the target."""
    differences: tuple[Change, ...] = ()
    """How topics, settings and permissions of the target differ from the source's, as long as that can be compared."""
    source_answered: bool = False
    ledger_rows: int = 0
    """How many rows the ledger had before this was translated."""
    provisional: str | None = None
    """Why offsets are looked up once more when the writers are fenced, in a sentence; None where they hold."""
    notes: tuple[str, ...] = ()
    registry: Mapping[str, Any] = field(default_factory=dict)
    """What of the Schema Registry's topic, where the flow mirrors it; see `operations.schema_registry`."""

    @property
    def commits(self) -> dict[str, list[GroupStart]]:
        """By group, what is to be committed."""
        found: dict[str, list[GroupStart]] = {}
        for row in self.rows:
            if row.commit:
                found.setdefault(row.group, []).append(row)
        return found

    @property
    def groups(self) -> int:
        return len({row.group for row in self.rows})

    @property
    def names_changed(self) -> dict[str, str]:
        return {name: twin for name, twin in self.topics.items() if name != twin}

    def to_json(self) -> dict[str, Any]:
        request = asdict(self.request)
        return {
            "version": VERSION,
            "id": self.id,
            "kind": str(self.kind),
            "flow": self.flow,
            "source": self.source,
            "target": self.target,
            "made_at_ms": self.made_at_ms,
            "request": {**request, "overrides": [list(pair) for pair in request["overrides"]]},
            "plan": [row._asdict() for row in self.rows],
            "left_out": [row._asdict() for row in self.left_out],
            "losses": [asdict(loss) for loss in self.losses],
            "lost_records": self.lost_records,
            "lost_seconds": self.lost_seconds,
            "lost_note": self.lost_note,
            "bootstrap_servers": self.bootstrap_servers,
            "topics": dict(self.topics),
            "promoted": list(self.promoted),
            "settings": [asdict(change) for change in self.settings],
            "acls": [list(astuple(acl)) for acl in self.acls],
            "differences": [change.to_json() for change in self.differences],
            "source_answered": self.source_answered,
            "ledger_rows": self.ledger_rows,
            "provisional": self.provisional,
            "notes": list(self.notes),
            "registry": dict(self.registry),
            "steps": list(self.sentences),
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> TakeoverPlan:
        """The plan that was written; one of a newer twinlog is refused rather than guessed."""
        if said.get("version") != VERSION:
            raise ConfigurationError(
                f"the plan {said.get('id')} has version {said.get('version')}, and this twinlog reads {VERSION}"
            )
        request = said["request"]
        asked = Request(
            **{
                **request,
                "strategy": Strategy(request["strategy"]),
                "overrides": tuple((pattern, Strategy(strategy)) for pattern, strategy in request["overrides"]),
            }
        )
        plain = {item.name: said[item.name] for item in fields(cls) if item.name in said}
        return cls(
            **{
                **plain,
                "kind": Kind(said["kind"]),
                "request": asked,
                "rows": tuple(GroupStart(**row) for row in said["plan"]),
                "left_out": tuple(GroupLeftOut(**row) for row in said["left_out"]),
                "losses": tuple(TopicLoss(**loss) for loss in said["losses"]),
                "promoted": tuple(said["promoted"]),
                "settings": tuple(SettingChange(**change) for change in said["settings"]),
                "acls": tuple(acl_of(words) for words in said["acls"]),
                "differences": tuple(Change.from_json(change) for change in said.get("differences", ())),
                "notes": tuple(said["notes"]),
            }
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is going to be done, step by step."""
        count = sum(row.commit for row in self.rows)
        groups = len(self.commits)
        before = (
            (
                f"producers stop writing to {self.source}, or are denied it; everything is copied until nothing is "
                "left, and the flow is drained",
                "a reconciliation proves both logs equal; where they are not, all of this is undone",
            )
            if self.kind is Kind.SWITCHOVER
            else ()
        )
        steps = (
            *before,
            f"{self.flow} is marked failed over on {self.target}, and every writer of it is fenced",
            f"the ledger is brought up to date from the journal on {self.target}",
            f"{count:,} offsets of {groups:,} groups are committed on {self.target}, and read back",
            f"{len(self.promoted):,} topics are promoted: {len(self.settings):,} settings are put back, and "
            f"{len(self.acls):,} permissions granted",
            "hooks are called",
        )
        return tuple(f"{number}. {step}" for number, step in enumerate(steps, 1))


def reset_csv(rows: Iterable[GroupStart], *, with_group: bool) -> str:
    """The rows as `kafka-consumer-groups --reset-offsets --from-file` reads them: `topic,partition,offset` where it is
    told one group, `group,topic,partition,offset` where it is told several or all."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        place = (row.topic, row.partition, row.offset)
        writer.writerow((row.group, *place) if with_group else place)
    return text.getvalue()
