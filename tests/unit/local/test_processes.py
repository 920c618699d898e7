"""No child outlives its parent, whichever way the parent ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from local import processes
from local.errors import StartError
from local.processes import Process
from support.process_table import pids_with
from support.waiting import await_condition

# Starts a grandchild in a process group of its own, as Spark's and Airflow's do, says so and waits.
FAMILY = """
import signal, subprocess, sys
subprocess.Popen(["sleep", "600"], process_group=0)
print("up", flush=True)
signal.pause()
"""
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.pause()"

PARENT = """
import pathlib, signal, sys
from local.processes import Process, await_ready, stop, termination_as_exit
log = pathlib.Path(sys.argv[1])
# A shell starts what runs in its background deaf to Ctrl-C, and that is handed down.
signal.signal(signal.SIGINT, signal.default_int_handler)
with termination_as_exit():
    child = Process("child", [sys.executable, "-c", sys.argv[2]], log)
    try:
        await_ready(child, lambda: "up" in log.read_text(), 30)
        print("ready", flush=True)
        signal.pause()
    finally:
        stop([child], 10)
"""


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> str:
    """A word in the environment of all processes that the test starts, by which it finds them again."""
    word = f"twinlog-test-{uuid.uuid4()}"
    monkeypatch.setenv("TWINLOG_TEST_MARK", word)
    return word


def started(script: str, log: Path) -> Process:
    process = Process("the child", [sys.executable, "-c", script], log)
    processes.await_ready(process, lambda: "up" in log.read_text(), 30)
    return process


def others(mark: str) -> set[int]:
    return pids_with(mark) - {os.getpid()}


def test_stopping_ends_the_child_and_what_it_started(tmp_path: Path, mark: str) -> None:
    child = started(FAMILY, tmp_path / "log")
    assert processes.stop([child], 10) == []
    assert child.exit_code == -signal.SIGTERM
    await_condition(lambda: not others(mark), "all have ended")


def test_a_child_that_does_not_listen_is_killed(tmp_path: Path, mark: str) -> None:
    child = started(DEAF, tmp_path / "log")
    assert processes.stop([child], 0.2) == [child]
    await_condition(lambda: not others(mark), "all have ended")


def test_a_paused_child_can_be_stopped(tmp_path: Path) -> None:
    child = started(FAMILY, tmp_path / "log")
    child.send(signal.SIGSTOP)
    assert processes.stop([child], 10) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_the_parent_is_told_to_end_or_killed(
    tmp_path: Path, mark: str, number: signal.Signals
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "log"), FAMILY],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(processes.__file__).parents[1])},
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        assert len(others(mark)) == 4  # the parent, the child, its watcher and the grandchild
        parent.send_signal(number)
        parent.wait(30)
    await_condition(lambda: not others(mark), "all have ended")


def test_a_child_that_ends_while_starting_is_reported_with_its_last_lines(tmp_path: Path) -> None:
    child = Process("the broker", [sys.executable, "-c", "print('no luck'); exit(7)"], tmp_path / "log")
    with pytest.raises(StartError, match=r"^the broker ended with exit code 7 while starting;(.|\n)*no luck$"):
        processes.await_ready(child, lambda: False, 30)


def test_a_child_that_is_late_is_reported(tmp_path: Path) -> None:
    child = started(FAMILY, tmp_path / "log")
    try:
        with pytest.raises(StartError, match=r"^the child was not ready within 0 s;"):
            processes.await_ready(child, lambda: False, 0)
    finally:
        child.kill()


def test_a_command_that_is_not_there_says_so_in_the_log(tmp_path: Path) -> None:
    child = Process("nobody", ["/no/such/command"], tmp_path / "log")
    assert child.wait(30)
    assert child.exit_code == 1
    assert "/no/such/command could not be run" in child.last_lines()
