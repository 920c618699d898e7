from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from local import lock, places
from local.errors import LocalError, PreconditionError


def test_the_lock_of_a_process_that_was_killed_is_free(tmp_path: Path) -> None:
    file = tmp_path / "it.lock"
    script = "import sys, time; from pathlib import Path; from local import lock\n" + (
        "with lock.held(Path(sys.argv[1]), 'It', 'nothing'): print('held', flush=True); time.sleep(60)"
    )
    environ = {**os.environ, "PYTHONPATH": str(places.INCLUDE)}
    with subprocess.Popen(
        [sys.executable, "-c", script, str(file)], env=environ, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert lock.holder(file) == process.pid
        with pytest.raises(PreconditionError, match=f"It is running already, as process {process.pid};"):
            lock.held(file, "It", "nothing").__enter__()
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert lock.holder(file) is None
    with lock.held(file, "It", "nothing"):
        pass


def test_who_asks_before_the_holder_has_named_itself_waits_for_the_name(tmp_path: Path) -> None:
    file = tmp_path / "it.lock"
    with file.open("w") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)

        def name_itself() -> None:
            opened.write(f"{os.getpid()}\n")
            opened.flush()

        late = threading.Timer(0.3, name_itself)
        late.start()
        assert lock.holder(file) == os.getpid()
        late.join()


def test_a_holder_that_never_names_itself_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "it.lock"
    monkeypatch.setattr(lock, "_NAMED_WITHIN_S", 0.1)
    with file.open("w") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        with pytest.raises(LocalError, match=f"^{file} is locked by a process that does not name itself;"):
            lock.holder(file)


def test_who_only_asks_is_not_taken_for_a_holder(tmp_path: Path) -> None:
    file = tmp_path / "it.lock"
    file.touch()
    with file.open() as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        assert lock.holder(file) is None


def test_a_holder_that_does_not_end_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "it.lock"
    monkeypatch.setattr(os, "kill", lambda *_: None)
    with lock.held(file, "It", "nothing"), pytest.raises(LocalError, match=f"Process {os.getpid()} did not end"):
        lock.stop_holder(file, timeout_s=0.1)
