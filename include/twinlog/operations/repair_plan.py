"""What a repair is going to do, found without changing anything; it is shown, approved and then carried out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from twinlog.errors import ConfigurationError
from twinlog.model.offsets import Span
from twinlog.model.repair import RECOVERED_TOPIC, Moved, Records, Remedy

VERSION = 1


@dataclass(frozen=True, slots=True)
class RepairRequest:
    """What somebody asks for."""

    records: Records = Records.RECOPY
    topics: str | None = None
    """Only source topics whose whole name this pattern matches, where something is to be done about records."""
    accept_loss: bool = False
    """Whether a topic may be copied again although its twin has records that the source has no longer."""


@dataclass(frozen=True, slots=True)
class TopicToRecopy:
    """A topic that is copied again into a fresh one, which then takes its twin's place."""

    topic: str
    twin: str
    twin_id: str
    """Of the topic that is deleted; one that is there under another id by then stays."""
    words: str
    """What is wrong with it."""
    bytes: int = 0
    """About so many are copied, as the ledger knows them."""
    only_there: int = 0
    """Records that the source has no longer: they go with the twin."""
    groups: tuple[str, ...] = ()
    """That have positions on the twin, and go on where they were."""
    moved: tuple[Moved, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicToRecover:
    """A topic of which what is missing or altered goes to a topic of its own."""

    topic: str
    twin: str
    words: str
    lacking: Mapping[int, Sequence[Span]]
    """Source offsets, by partition."""

    @property
    def into(self) -> str:
        return f"{self.twin}{RECOVERED_TOPIC}"

    @property
    def records(self) -> int:
        return sum(span.end - span.start for spans in self.lacking.values() for span in spans)


@dataclass(frozen=True)
class RepairPlan:
    """One repair, before it is carried out."""

    id: str
    flow: str
    source: str
    target: str
    made_at_ms: int
    request: RepairRequest
    reconciled_at_ms: int = 0
    """When what is to be repaired was found."""
    refused: tuple[str, ...] = ()
    """Why it can't be carried out, a sentence each."""
    settings: tuple[str, ...] = ()
    """What a sync would change."""
    ledger: str | None = None
    """Why the ledger is rebuilt, if it is."""
    checkpoints: int = 0
    """That are written anew."""
    recover: tuple[TopicToRecover, ...] = ()
    recopy: tuple[TopicToRecopy, ...] = ()
    notes: tuple[str, ...] = ()
    """What stays as it is, and why, a sentence each."""
    under_way: bool = False
    """It was begun before and has not ended: it is what goes on."""

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """The steps, in their order."""
        wanted = {
            Remedy.SETTINGS: bool(self.settings),
            Remedy.LEDGER: self.ledger is not None,
            Remedy.RECOVER: bool(self.recover),
            Remedy.RECOPY: bool(self.recopy),
            Remedy.CHECKPOINTS: bool(self.checkpoints or self.recopy),
        }
        return tuple(remedy for remedy, is_wanted in wanted.items() if is_wanted)

    @property
    def sentences(self) -> Iterator[str]:
        """What is going to be done, step by step, for people."""
        if self.settings:
            yield f"put right on {self.target}: {'; '.join(self.settings)}"
        if self.ledger is not None:
            yield f"the ledger is rebuilt from the journal on {self.target}: {self.ledger}"
        for one in self.recover:
            yield (
                f"{one.topic} ({one.words}): {one.records:,} records are appended to {one.into} on {self.target}, each "
                "with its source offset in a header; the twin stays as it is"
            )
        for topic in self.recopy:
            yield from self._recopying(topic)
        if self.checkpoints or self.recopy:
            yield "the groups' checkpoints are written anew"
        if self.remedies:
            yield "what was repaired is compared again"

    def _recopying(self, one: TopicToRecopy) -> Iterator[str]:
        yield (
            f"{one.topic} ({one.words}) is copied again from {self.source} into a fresh topic, about "
            f"{one.bytes / 1e6:,.1f} MB, and proven equal, while {one.twin} is still there"
        )
        groups = f"; {len(one.groups):,} groups go on where they were: {', '.join(one.groups[:10])}"
        lost = f"; {one.only_there:,} records that {self.source} has no longer go with it"
        yield (
            f"{one.twin} on {self.target} (id {one.twin_id}) is DELETED, made anew and filled from the fresh topic"
            f"{groups if one.groups else ''}{lost if one.only_there else ''}"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "version": VERSION,
            "request": {**asdict(self.request), "records": str(self.request.records)},
            "recover": [_row_of(one) for one in self.recover],
            "recopy": [{**asdict(one), "groups": list(one.groups), "moved": _rows(one.moved)} for one in self.recopy],
            "remedies": [str(remedy) for remedy in self.remedies],
            "steps": list(self.sentences),
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> RepairPlan:
        if said.get("version") != VERSION:
            raise ConfigurationError(
                f"the plan {said.get('id')} is of version {said.get('version')}, which this Twinlog does not know"
            )
        names = ("id", "flow", "source", "target", "made_at_ms", "reconciled_at_ms", "ledger", "checkpoints")
        request = said["request"]
        return cls(
            **{name: said[name] for name in names},
            request=replace(RepairRequest(**request), records=Records(request["records"])),
            refused=tuple(said["refused"]),
            settings=tuple(said["settings"]),
            recover=tuple(_to_recover(row) for row in said["recover"]),
            recopy=tuple(_to_recopy(row) for row in said["recopy"]),
            notes=tuple(said["notes"]),
        )


@dataclass(frozen=True)
class RepairResult:
    """What became of a plan."""

    plan: RepairPlan
    done: tuple[Remedy, ...] = ()
    failure: str | None = None
    """Why it stopped; the next call goes on there."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    verdict: str | None = None
    """Of what was repaired, compared again; None where it was not."""
    left: tuple[str, ...] = ()
    """What still differs, a sentence each."""
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        return self.failure is None

    @property
    def exit_code(self) -> int:
        return 0 if self.complete and self.verdict != "different" else 1

    def to_json(self) -> dict[str, Any]:
        return {
            "flow": self.plan.flow,
            "plan": self.plan.id,
            "done": [str(remedy) for remedy in self.done],
            "complete": self.complete,
            "failure": self.failure,
            "verdict": self.verdict,
            "left": list(self.left),
            "warnings": list(self.warnings),
            "seconds": round(self.seconds, 3),
            **self.figures,
        }


def _rows(moved: Sequence[Moved]) -> list[dict[str, Any]]:
    return [asdict(one) for one in moved]


def _row_of(one: TopicToRecover) -> dict[str, Any]:
    # The keys of JSON's objects are texts.
    lacking = {str(number): [list(span) for span in spans] for number, spans in one.lacking.items()}
    return {"topic": one.topic, "twin": one.twin, "words": one.words, "lacking": lacking}


def _to_recover(row: Mapping[str, Any]) -> TopicToRecover:
    lacking = {int(number): [Span(*span) for span in spans] for number, spans in row["lacking"].items()}
    return TopicToRecover(row["topic"], row["twin"], row["words"], lacking)


def _to_recopy(row: Mapping[str, Any]) -> TopicToRecopy:
    moved = tuple(Moved(**one) for one in row["moved"])
    return TopicToRecopy(**{**row, "groups": tuple(row["groups"]), "moved": moved})
