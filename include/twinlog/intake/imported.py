"""What an import hands back: a topology as text, and where every key of the input went.

Each key that was written in the input is in exactly one of two lists: `taken`, with the place in the topology
that says the same, or `left_out`, with the reason. No value of a secret is in any of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from twinlog.model.references import is_secret, whole

MASK = "********"
# Wider than `is_secret`, which knows client properties only: here anything may come by.
_SENSITIVE = re.compile(
    r"password|passphrase|secret|jaas|token|credential|licen[cs]e|user\.?info|api\.?key|private|keystore\.key|\.pem",
    re.IGNORECASE,
)
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")


@dataclass(frozen=True)
class Written:
    """One key as it stands in the input; `line` is None where the format has no use for lines."""

    key: str
    value: str
    file: str
    line: int | None = None

    @property
    def place(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def __repr__(self) -> str:
        return f"Written({self.key!r} at {self.place})"


@dataclass(frozen=True)
class LeftOut:
    """A key that has no counterpart, and why."""

    key: str
    value_masked: str
    reason: str
    place: str


@dataclass(frozen=True)
class Taken:
    """A key that has one: `path` leads to it in the topology, such as ("flows", "nyc->lon", "topics")."""

    key: str
    path: tuple[str, ...]
    place: str


@dataclass(frozen=True)
class Imported:
    """An import's result. `variables` are the environment variables that must hold what was plain before."""

    topology_yaml: str
    left_out: tuple[LeftOut, ...]
    taken: tuple[Taken, ...]
    variables: tuple[str, ...]
    notes: tuple[str, ...]


def masked(key: str, value: str) -> str:
    """The value as it may be shown; one that may be a secret counts as one."""
    sensitive = is_secret(key) or _SENSITIVE.search(key) is not None
    if sensitive and value and whole(value) is None:
        return MASK
    return _USER_INFO.sub(MASK, value)
