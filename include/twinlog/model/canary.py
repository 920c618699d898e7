"""Canaries: records whose every byte is known beforehand, and the verdict on what a reader saw of them on the target.

A round is one set of marks, numbered from 0 in each partition. The value repeats what identifies the mark and holds a
payload with its digest, so that a record can be judged by whoever finds it, the sender long gone. Key, value and
headers each name the mark: altering one of them makes a record altered, not lost.

    sent   0 1 2 3 4 5
    seen   0 2 1 2 5 4*      1 and 4 out of order, 2 doubled, 3 lost, 4 altered
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_PAYLOAD_DIGITS = 128
_HEADER = "twinlog-canary"


def canary_topic(source: str) -> str:
    """The canary topic that flows from a cluster share; with its alias, so that none collides where names stay as they
    are, and one that was mirrored in is never taken for the cluster's own."""
    return f"twinlog.{source}.canary"


class MarkId(NamedTuple):
    """What tells a mark from every other."""

    flow: str
    round: str
    partition: int
    sequence: int

    def text(self) -> str:
        return json.dumps([self.flow, self.round, self.partition, self.sequence], separators=(",", ":"))


class Content(NamedTuple):
    """What a reader sees of a record, less its offset."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Mark:
    """One record of a round."""

    id: MarkId
    sent_ms: int

    def content(self) -> Content:
        """The record as it is sent."""
        name = self.id.text().encode()
        payload = hashlib.shake_256(name).hexdigest(_PAYLOAD_DIGITS // 2)
        value = {
            "flow": self.id.flow,
            "round": self.id.round,
            "partition": self.id.partition,
            "sequence": self.id.sequence,
            "sent_ms": self.sent_ms,
            "payload": payload,
            "sha256": hashlib.sha256(payload.encode()).hexdigest(),
        }
        headers = ((_HEADER, name), ("sent-ms", str(self.sent_ms).encode()))
        return Content(name, json.dumps(value).encode(), headers, self.sent_ms)


@dataclass(frozen=True, slots=True)
class Sighting:
    """A record as it was read on the target, and when."""

    partition: int
    content: Content
    seen_ms: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a round."""

    sent: int
    arrived: int
    """Marks that were seen at least once."""
    lost: int
    """Not there although the flow has passed them, and the twin was read to its end."""
    late: int
    """Not there yet, and nobody can say that they will not come."""
    doubled: int
    """Sightings of a mark beyond the first."""
    out_of_order: int
    """Marks that came after one that was sent later to the same partition."""
    altered: int
    """Sightings whose key, value, headers, timestamp or partition is not what was sent."""
    latency_p50_s: float | None
    """From sending to being readable; None where nothing arrived."""
    latency_p99_s: float | None

    @property
    def faults(self) -> dict[str, int]:
        return {
            "lost": self.lost,
            "late": self.late,
            "doubled": self.doubled,
            "out_of_order": self.out_of_order,
            "altered": self.altered,
        }

    @property
    def clean(self) -> bool:
        return not any(self.faults.values())


def judge(sent: Sequence[Mark], seen: Sequence[Sighting], *, complete: bool) -> Verdict:
    """The verdict on a round; sightings are in the order of their offsets within each partition.

    `complete` says that what was not seen will not come, so that it is lost and not late. Records of other rounds and
    flows, which share the topic, are passed over.
    """
    marks = {mark.id: mark for mark in sent}
    sightings: dict[MarkId, list[Sighting]] = {}
    for sighting in seen:
        found = identify(sighting.content, marks)
        if found is not None:
            sightings.setdefault(found, []).append(sighting)
    missing = len(marks) - len(sightings)
    latencies = sorted(
        max(0.0, min(one.seen_ms for one in found) - marks[name].sent_ms) / 1000 for name, found in sightings.items()
    )
    return Verdict(
        sent=len(marks),
        arrived=len(sightings),
        lost=missing if complete else 0,
        late=0 if complete else missing,
        doubled=sum(len(found) - 1 for found in sightings.values()),
        out_of_order=_out_of_order(seen, marks),
        altered=sum(
            one.partition != name.partition or one.content != marks[name].content()
            for name, found in sightings.items()
            for one in found
        ),
        latency_p50_s=quantile(latencies, 0.5),
        latency_p99_s=quantile(latencies, 0.99),
    )


def identify(content: Content, marks: Collection[MarkId]) -> MarkId | None:
    """The mark of these that most of key, value and headers name; None where none of them does."""
    named = Counter(name for name in _names(content) if name in marks)
    return named.most_common(1)[0][0] if named else None


def quantile(ascending: Sequence[float], share: float) -> float | None:
    """The smallest value that at least this share of all values do not exceed; None of no values."""
    return ascending[max(math.ceil(share * len(ascending)), 1) - 1] if ascending else None


def _out_of_order(seen: Sequence[Sighting], marks: Mapping[MarkId, Mark]) -> int:
    """By first sightings in the partition that was sent to: one elsewhere is altered, one again is doubled."""
    latest: dict[int, int] = {}
    before: set[MarkId] = set()
    displaced = 0
    for sighting in seen:
        name = identify(sighting.content, marks)
        if name is None or name in before or sighting.partition != name.partition:
            continue
        before.add(name)
        displaced += name.sequence < latest.get(name.partition, -1)
        latest[name.partition] = max(name.sequence, latest.get(name.partition, -1))
    return displaced


def _names(content: Content) -> Iterator[MarkId]:
    texts = [content.key, *(value for name, value in content.headers if name == _HEADER)]
    for text in texts:
        match _parsed(text):
            case [str(flow), str(round_), int(partition), int(sequence)]:
                yield MarkId(flow, round_, partition, sequence)
    match _parsed(content.value):
        case {"flow": str(flow), "round": str(round_), "partition": int(partition), "sequence": int(sequence)}:
            yield MarkId(flow, round_, partition, sequence)


def _parsed(text: bytes | None) -> object:
    try:
        return json.loads(text or b"null")
    except ValueError:
        return None  # somebody altered it; the mark's other names may still stand
