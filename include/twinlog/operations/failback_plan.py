"""What a failback is going to do, found without changing anything; it is shown, approved and then carried out.

`refused` holds whatever keeps it from beginning, a sentence each: a cluster that is not whole, topics that do not fit
their positions, schemas that clash. What is listed of the stranded records are the first LISTED_AT_MOST; all of them
are kept as Parquet when the failback is carried out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from twinlog.errors import ConfigurationError
from twinlog.model.failback import Mode, Step, Stranded

VERSION = 1
LISTED_AT_MOST = 100


@dataclass(frozen=True, slots=True)
class FailbackRequest:
    """What somebody asks for."""

    mode: Mode = Mode.RESUME
    stranded: Stranded = Stranded.LEAVE
    rebuild_damaged: bool = False
    """Whether `resume` may rebuild the topics that have lost what had been mirrored."""
    accept_degraded: bool = False
    """Whether it may begin although the returned cluster is not whole."""
    block_writes: bool = False
    """Whether producers on the target are kept from writing by ACLs while the last of it goes home."""
    also: tuple[str, ...] = ()
    """Topics that were made on the target while it led, and are to go home too."""


@dataclass(frozen=True, slots=True)
class StrandedPartition:
    """What of one partition never crossed: source offsets `[start, end)`."""

    topic: str
    twin: str
    partition: int
    start: int
    end: int
    records: int
    """Committed ones among the offsets."""
    expired: int
    """Offsets before `start` that retention has removed: lost."""
    target_start: int
    target_end: int
    """`[target_start, target_end)` was written on the target since: what is appended comes after it there, and before
    it on the source."""


@dataclass(frozen=True, slots=True)
class StrandedListed:
    """One stranded record."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: str | None
    """As text, as far as it is."""


@dataclass(frozen=True)
class FailbackPlan:
    """One failback, before it is carried out."""

    id: str
    flow: str
    way_home: str
    source: str
    target: str
    made_at_ms: int
    request: FailbackRequest
    state: str
    refused: tuple[str, ...] = ()
    health: tuple[str, ...] = ()
    """What the returned cluster lacks, accepted or not."""
    damaged: tuple[str, ...] = ()
    stranded: tuple[StrandedPartition, ...] = ()
    records: tuple[StrandedListed, ...] = ()
    topics: Mapping[str, str] = field(default_factory=dict)
    """Of the target, that go home, each with its name there."""
    delete: Mapping[str, str] = field(default_factory=dict)
    """Topics of the returned cluster that are deleted and made anew, each with the id that it has now."""
    anew: tuple[str, ...] = ()
    """Topics of the target of which everything goes home."""
    stamps: Mapping[str, str | None] = field(default_factory=dict)
    """Topics of the returned cluster that are stamped on arrival, each with what it overrides of that: what goes home
    keeps its stamps."""
    waiting: int = 0
    """Offsets on the target that are to go home, about."""
    notes: tuple[str, ...] = ()

    @property
    def stranded_records(self) -> int:
        return sum(one.records for one in self.stranded)

    @property
    def order_changes(self) -> list[dict[str, Any]]:
        """Where the order differs between the sites once the stranded are appended."""
        if self.request.stranded is not Stranded.APPEND:
            return []
        return [
            {
                "topic": one.topic,
                "partition": one.partition,
                "source_start": one.start,
                "source_end": one.end,
                "target_start": one.target_start,
                "target_end": one.target_end,
            }
            for one in self.stranded
            if one.records and one.target_end > one.target_start
        ]

    @property
    def sentences(self) -> Iterator[str]:
        """What is going to be done, step by step, for people."""
        request = self.request
        yield f"{self.flow} is marked failing back on {self.target}, and every writer of it is fenced"
        if self.stranded_records:
            does = {
                Stranded.LEAVE: f"stay on {self.source}",
                Stranded.TOPIC: f"go to topics of their own on {self.target}, named as theirs with .stranded behind",
                Stranded.APPEND: f"are appended on {self.target}, behind what was written there since",
            }[request.stranded]
            yield f"{self.stranded_records:,} stranded records are kept as Parquet beside the ledger, and {does}"
        expired = sum(one.expired for one in self.stranded)
        if expired:
            yield f"{expired:,} offsets of {self.source} were removed by retention before they crossed, and are lost"
        for change in self.order_changes:
            yield (
                f"the order changes in {change['topic']}-{change['partition']}: on {self.source} its offsets "
                f"{change['source_start']} to {change['source_end'] - 1} come before what was written on {self.target}"
                f", and on {self.target}, where that has the offsets {change['target_start']} to "
                f"{change['target_end'] - 1}, they come after it"
            )
        if self.request.also:
            yield f"made on {self.source}, as they were made on {self.target}: {', '.join(self.request.also)}"
        if self.delete:
            yield f"DELETED on {self.source}, and made anew from {self.target}: {', '.join(sorted(self.delete))}"
        yield f"about {self.waiting:,} offsets of {len(self.topics):,} topics go home by {self.way_home}"
        does = "ACLs keep producers from writing there then" if request.block_writes else "stop the producers there"
        yield f"the last of it goes home when nobody writes on {self.target} any more: {does}"
        yield f"groups go on, on {self.source}, where they stopped on {self.target}"
        yield f"{self.flow} passes over what came home, both logs are compared, and the flow is active again"

    def to_json(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "id": self.id,
            "flow": self.flow,
            "way_home": self.way_home,
            "source": self.source,
            "target": self.target,
            "made_at_ms": self.made_at_ms,
            "mode": str(self.request.mode),
            "request": {**asdict(self.request), "mode": str(self.request.mode), "stranded": str(self.request.stranded)},
            "state": self.state,
            "refused": list(self.refused),
            "health": list(self.health),
            "damaged": list(self.damaged),
            "stranded_records": self.stranded_records,
            "stranded": [asdict(one) for one in self.stranded],
            "records": [asdict(one) for one in self.records],
            "order_changes": self.order_changes,
            "topics": dict(self.topics),
            "delete": dict(self.delete),
            "anew": list(self.anew),
            "stamps": dict(self.stamps),
            "waiting": self.waiting,
            "notes": list(self.notes),
            "steps": list(self.sentences),
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> FailbackPlan:
        """The plan that was written; one of a newer twinlog is refused rather than guessed."""
        if said.get("version") != VERSION:
            raise ConfigurationError(
                f"the plan {said.get('id')} has version {said.get('version')}, and this twinlog reads {VERSION}"
            )
        request = dict(said["request"])
        plain = {item.name: said[item.name] for item in fields(cls) if item.name in said}
        lists = {name: tuple(said[name]) for name in ("refused", "health", "damaged", "anew", "notes")}
        return cls(
            **{
                **plain,
                **lists,
                "request": FailbackRequest(
                    **{
                        **request,
                        "mode": Mode(request["mode"]),
                        "stranded": Stranded(request["stranded"]),
                        "also": tuple(request.get("also", ())),
                    }
                ),
                "stranded": tuple(StrandedPartition(**one) for one in said["stranded"]),
                "records": tuple(StrandedListed(**one) for one in said["records"]),
            }
        )


@dataclass(frozen=True)
class FailbackResult:
    """What came of a failback."""

    plan: FailbackPlan
    done: tuple[Step, ...] = ()
    """The steps that are done, by this call or an earlier one."""
    failure: str | None = None
    """What stopped it, in a sentence; run again, it goes on there."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        return len(self.done) == len(Step)

    @property
    def exit_code(self) -> int:
        return 0 if self.complete and self.figures.get("verdict") != "different" else 1

    def to_json(self) -> dict[str, Any]:
        return {
            "flow": self.plan.flow,
            "plan": self.plan.to_json(),
            "done": [str(step) for step in self.done],
            "complete": self.complete,
            "failure": self.failure,
            "figures": dict(self.figures),
            "warnings": list(self.warnings),
            "seconds": round(self.seconds, 3),
        }
