"""Child processes that never outlive us.

Each child leads a session of its own, so Ctrl-C in a terminal reaches us alone and we end the children in
order; what a child has started ends with it. Each is on a leash (see leash.py), so that all this also holds
when we are killed without a chance to do anything.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from local.errors import StartError
from local.leash import kill_session

_LEASH = Path(__file__).with_name("leash.py")
_POLL_S = 0.1
_LAST_LINES = 15


class Process:
    """One running command, its output in a log file that is appended to."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        environ: Mapping[str, str] = os.environ,
        folder: Path | None = None,
    ) -> None:
        self.name = name
        self.log = log
        reading, self._leash = os.pipe()
        try:
            with log.open("ab") as output:
                self._popen = subprocess.Popen(
                    # -I and -S: neither the environment nor site-packages can change or slow the leash.
                    [sys.executable, "-I", "-S", str(_LEASH), str(reading), *command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=dict(environ),
                    cwd=folder,
                    pass_fds=[reading],
                    start_new_session=True,
                )
        except BaseException:
            os.close(self._leash)
            raise
        finally:
            os.close(reading)
        self._released = False

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def running(self) -> bool:
        return self.exit_code is None

    @property
    def exit_code(self) -> int | None:
        code = self._popen.poll()
        if code is not None:
            self._release()
        return code

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to the command alone; nothing where it has ended."""
        self._popen.send_signal(number)

    def kill(self) -> None:
        """Ends the command at once, with all it has started."""
        self.send(signal.SIGKILL)
        self.wait(None)

    def wait(self, timeout_s: float | None) -> bool:
        """Whether the command ended in time."""
        try:
            self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        self._release()
        return True

    def last_lines(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_LAST_LINES:])

    def _release(self) -> None:
        if self._released:
            return
        self._released = True
        kill_session(self.pid)
        # The pipe may have no reader: a command that could not be run may end before its watcher begins.
        with suppress(BrokenPipeError):
            os.write(self._leash, b".")
        os.close(self._leash)


def stop(processes: Iterable[Process], grace_s: float) -> list[Process]:
    """Asks all to end, at once, and kills those that have not after the grace; returns the killed ones."""
    asked = [process for process in processes if process.running]
    for process in asked:
        process.send(signal.SIGTERM)
        process.send(signal.SIGCONT)  # a paused one would not see the first signal
    deadline = time.monotonic() + grace_s
    late = [process for process in asked if not process.wait(max(0.0, deadline - time.monotonic()))]
    for process in late:
        process.kill()
    return late


def await_ready(process: Process, ready: Callable[[], bool], timeout_s: float) -> None:
    """Asks until it is ready; an error with the log's last lines where it ends or is late."""
    deadline = time.monotonic() + timeout_s
    while not ready():
        if not process.running:
            raise StartError(
                f"{process.name} ended with exit code {process.exit_code} while starting; the last lines of "
                f"{process.log}:\n{process.last_lines()}"
            )
        if time.monotonic() > deadline:
            raise StartError(
                f"{process.name} was not ready within {timeout_s:.0f} s; the last lines of "
                f"{process.log}:\n{process.last_lines()}"
            )
        time.sleep(_POLL_S)


@contextmanager
def termination_as_exit() -> Iterator[None]:
    """While inside, SIGTERM unwinds the stack as Ctrl-C does, so that every `with` stops what it started."""

    def leave(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("signals can only be handled in the main thread")
    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
