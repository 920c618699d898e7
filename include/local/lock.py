"""One at a time: a lock file that names its holder.

The system holds the lock for as long as the process lives and drops it however the process ends, so a file that is
left behind locks nothing, and a number in it that can be trusted is one whose lock is held. The holder writes its
number just after it has the lock; who asks in that instant waits for it.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.errors import LocalError, PreconditionError

_POLL_S = 0.2
_NAMED_WITHIN_S = 5.0


@contextmanager
def held(file: Path, what: str, how_to_stop: str) -> Iterator[None]:
    """Holds the lock while inside; refuses where another process does."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+") as opened:
        while not _take(opened.fileno(), fcntl.LOCK_EX):
            pid = holder(file)
            if pid is not None:  # otherwise it has ended since, or somebody only asked who holds the lock
                raise PreconditionError(f"{what} is running already, as process {pid}; stop it with {how_to_stop}.")
        opened.truncate(0)
        opened.write(f"{os.getpid()}\n")
        opened.flush()
        yield


def holder(file: Path) -> int | None:
    """The process that holds the lock."""
    deadline = time.monotonic() + _NAMED_WITHIN_S
    while True:
        try:
            with file.open("r") as opened:
                if _take(opened.fileno(), fcntl.LOCK_SH):
                    return None
                number = opened.read()
        except FileNotFoundError:
            return None
        if number.endswith("\n"):
            return int(number)
        if time.monotonic() > deadline:
            raise LocalError(f"{file} is locked by a process that does not name itself; look for it, or kill it.")
        time.sleep(_POLL_S)


def stop_holder(file: Path, timeout_s: float) -> int | None:
    """Asks the holder to end and waits until it has; returns its process number."""
    pid = holder(file)
    if pid is None:
        return None
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + timeout_s
    while holder(file) == pid:
        if time.monotonic() > deadline:
            raise LocalError(f"Process {pid} did not end within {timeout_s:.0f} s; look at it, or kill it.")
        time.sleep(_POLL_S)
    return pid


def _take(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
