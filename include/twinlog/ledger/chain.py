"""Which of a flow's files make up its ledger, told from their names alone.

A mark says how far each partition of the journal has been recorded. A file holds what the journal gained
from one mark to a later one, and its name carries both, so the files are edges of a graph whose nodes are
marks:

    start --a--> m1 --b--> m2 --c--> m3          a, b, c: one recording each
      \\__________ab________/                     ab: a and b, merged

Any way from the start to a mark holds the rows up to that mark exactly once. The ledger is the way that
leads furthest, with the fewest files. Hence no lock and no atomic rename of several files is needed: a
merged file takes over the moment it appears, a file of a recorder that came too late is on no such way, and
a recording that is repeated after a crash gives the same name again. Nothing here looks at a clock.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from twinlog.errors import LedgerError

_NAME = re.compile(r"segments-(\d{20})-(\d{20})-([0-9a-f]{16})-([0-9a-f]{16})\.parquet")


@dataclass(frozen=True, slots=True)
class Mark:
    """The next journal offset to record, by journal partition, of the journal with this topic id."""

    journal_id: str = ""
    offsets: Mapping[int, int] = field(default_factory=dict)

    @property
    def node(self) -> Node:
        return Node(sum(self.offsets.values()), hashlib.sha256(self.to_json().encode()).hexdigest()[:16])

    def to_json(self) -> str:
        offsets = {str(partition): self.offsets[partition] for partition in sorted(self.offsets)}
        return json.dumps({"journal_id": self.journal_id, "offsets": offsets}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Mark:
        fields = json.loads(text)
        return cls(fields["journal_id"], {int(key): value for key, value in fields["offsets"].items()})


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """A mark as names carry it: the sum of its offsets, which only grows, and a digest that tells marks apart."""

    total: int
    digest: str


START = Mark().node


@dataclass(frozen=True, slots=True, order=True)
class Link:
    """A ledger file by name: the rows that the journal gained between two marks."""

    before: Node
    after: Node

    def __post_init__(self) -> None:
        if self.after.total <= self.before.total:
            raise LedgerError(
                f"a ledger file must go forward in the journal, not from {self.before.total} to "
                f"{self.after.total}; was the journal topic made anew? Run `twinlog ledger rebuild`"
            )

    @property
    def name(self) -> str:
        before, after = self.before, self.after
        return f"segments-{before.total:020}-{after.total:020}-{before.digest}-{after.digest}.parquet"

    @classmethod
    def parse(cls, name: str) -> Link | None:
        """The link that a file name stands for; None for a file that is not one of the ledger's."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        return cls(Node(int(match[1]), match[3]), Node(int(match[2]), match[4]))

    def covers(self, other: Link) -> bool:
        return self.before.total <= other.before.total and other.after.total <= self.after.total


def live(links: Iterable[Link]) -> list[Link]:
    """The links that make up the ledger, first to last; empty where nothing leads away from the start."""
    steps: dict[Node, int] = {START: 0}
    arrival: dict[Node, Link] = {}
    # In this order a link's beginning has been settled before the link is looked at, since totals only grow.
    for link in sorted(links):
        if link.before not in steps:
            continue
        count = steps[link.before] + 1
        if link.after not in steps or count < steps[link.after]:
            steps[link.after] = count
            arrival[link.after] = link
    node = max(steps)
    way: list[Link] = []
    while node != START:
        way.append(arrival[node])
        node = way[-1].before
    return way[::-1]
