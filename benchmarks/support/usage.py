"""What processes use, read from /proc while they work: CPU seconds and memory, of whole trees.

A tree is a process and all that it has started. Memory is the resident set; pages that a forked worker shares with its
parent count for both, so the figure is an upper bound. A process that ends between two looks loses what it used since
the last one, a tenth of a second at most.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_EVERY_S = 0.1


class _Seen(NamedTuple):
    pid: int
    parent: int
    name: str
    cpu_s: float
    started: int
    resident_bytes: int


@dataclass(slots=True)
class Used:
    """What one kind of process used between the beginning and the end of a measurement."""

    cpu_s: float = 0.0
    peak_bytes: int = 0


@dataclass(slots=True)
class Watch:
    """Roots of process trees, and the kind under which each process found below them counts."""

    roots: set[int]
    kind_of: Callable[[str], str]
    only_new: str | None
    """Of this kind, processes that were there before do not count."""
    used: dict[str, Used] = field(default_factory=dict)
    _left_out: set[tuple[int, int]] = field(default_factory=set)
    _first: dict[tuple[int, int], float] = field(default_factory=dict)
    _last: dict[tuple[int, int], tuple[str, float]] = field(default_factory=dict)

    def look(self, *, beginning: bool = False) -> None:
        resident: dict[str, int] = {}
        for one in _trees(self.roots):
            kind, identity = self.kind_of(one.name), (one.pid, one.started)
            if beginning and kind == self.only_new:
                self._left_out.add(identity)
            if identity in self._left_out:
                continue
            # Those that were there before have used what they had; those that came later began with nothing.
            self._first.setdefault(identity, one.cpu_s if beginning else 0.0)
            self._last[identity] = (kind, one.cpu_s)
            resident[kind] = resident.get(kind, 0) + one.resident_bytes
        for kind, size in resident.items():
            used = self.used.setdefault(kind, Used())
            used.peak_bytes = max(used.peak_bytes, size)

    def add_up(self) -> Mapping[str, Used]:
        for used in self.used.values():
            used.cpu_s = 0.0
        for identity, (kind, cpu_s) in self._last.items():
            self.used[kind].cpu_s += cpu_s - self._first[identity]
        return self.used


@contextmanager
def watched(
    roots: Iterable[int], kind_of: Callable[[str], str] = lambda _: "all", only_new: str | None = None
) -> Iterator[Watch]:
    """Look at the trees ten times a second until the block ends; then `add_up` says what they used meanwhile."""
    watch = Watch(set(roots), kind_of, only_new)
    watch.look(beginning=True)
    ended = threading.Event()

    def look_again_and_again() -> None:
        while not ended.wait(_EVERY_S):
            watch.look()

    thread = threading.Thread(target=look_again_and_again, name="usage", daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        ended.set()
        thread.join()
        watch.look()


def python_or_jvm(name: str) -> str:
    return "jvm" if name == "java" else "python"


def child_running(text: str) -> int:
    """The child of this process whose command line contains `text`."""
    for pid in _pids():
        one = _read(pid)
        if one is not None and one.parent == os.getpid() and text in (_PROC / str(pid) / "cmdline").read_text():
            return pid
    raise LookupError(f"no child of this process runs {text}")


def _trees(roots: set[int]) -> list[_Seen]:
    everything = {one.pid: one for one in map(_read, _pids()) if one is not None}
    children: dict[int, list[int]] = {}
    for one in everything.values():
        children.setdefault(one.parent, []).append(one.pid)
    found, waiting = [], [root for root in roots if root in everything]
    while waiting:
        pid = waiting.pop()
        found.append(everything[pid])
        waiting += [child for child in children.get(pid, ()) if child not in roots]
    return found


def _pids() -> list[int]:
    return [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal()]


def _read(pid: int) -> _Seen | None:
    """One process, or None where it has just ended."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name may hold blanks and brackets; everything else follows the last one.
    before, _, after = text.rpartition(")")
    fields = after.split()
    cpu_s = (int(fields[11]) + int(fields[12])) / _TICKS
    return _Seen(pid, int(fields[1]), before.partition("(")[2], cpu_s, int(fields[19]), int(fields[21]) * _PAGE)
