"""Which processes of this machine have a word in their command line or their environment."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def pids_with(word: str) -> set[int]:
    """Processes that mention the word; those that have ended but are not waited for mention nothing."""
    found = set()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if word.encode() in (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes():
                found.add(int(folder.name))
    return found
