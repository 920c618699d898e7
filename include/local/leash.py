"""Runs a command that must not outlive the process that asked for it: `leash.py FD COMMAND...`.

FD is the reading end of a pipe whose writing end only the asker holds, and the asker has started this program
as the leader of a new session. It forks; the child becomes the watcher, in another session, and the parent
becomes the command, so the asker's child *is* the command. When the asker is gone, however it died, the pipe
ends and the watcher kills the command's session. A byte in the pipe means that the asker has seen to it.

It runs without site-packages and imports little, for it stands in front of every start.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path


def main() -> None:
    pipe, command = int(sys.argv[1]), sys.argv[2:]
    leashed = os.getpid()
    if os.fork() == 0:
        os.setsid()
        _let_go_of_standard_streams()
        _watch(pipe, leashed)
        os._exit(0)
    os.close(pipe)
    try:
        os.execvp(command[0], command)  # noqa: S606 - becoming the command, without a shell, is the purpose
    except OSError as error:
        sys.exit(f"{command[0]} could not be run: {error}")


def _let_go_of_standard_streams() -> None:
    # Whoever reads the command's output waits for its end, not for the watcher's.
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


def _watch(pipe: int, leashed: int) -> None:
    if os.read(pipe, 1) == b"":
        kill_session(leashed)


def kill_session(leader: int) -> None:
    """Kills what runs in the session, also what has made a process group of its own there.

    Where there is no /proc to find the session's members, the leader's group must do.
    """
    for _ in range(2):  # again, for a member may fork while we look
        with suppress(ProcessLookupError):  # its own group has ended; others of the session may not have
            os.killpg(leader, signal.SIGKILL)
        for pid in _all_pids():
            with suppress(ProcessLookupError):  # it ended while we looked
                if os.getsid(pid) == leader:
                    os.kill(pid, signal.SIGKILL)


def _all_pids() -> list[int]:
    processes = Path("/proc")
    return [int(entry.name) for entry in processes.iterdir() if entry.name.isdecimal()] if processes.is_dir() else []


if __name__ == "__main__":
    main()
