"""`make demo ONCE=1` from end to end, and that only one demo runs at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from local import lock, places
from support.process_table import pids_with
from support.waiting import await_condition

DEMO_TIMEOUT_S = 540

# It starts everything there is, and a busy machine takes its time.
pytestmark = pytest.mark.timeout(600)


def demo(work: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "TWINLOG_WORK": str(work), "PYTHONPATH": str(places.INCLUDE)}
    return subprocess.run(
        [sys.executable, "-m", "local.demo", *arguments],
        env=environ,
        capture_output=True,
        text=True,
        timeout=DEMO_TIMEOUT_S,
        check=False,
    )


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A work folder of its own, with the jars that `make setup` fetched."""
    (tmp_path / "kafka-jars").symlink_to(places.kafka_jars_folder())
    return tmp_path


def test_it_shows_its_steps_ends_by_itself_and_leaves_nothing_running(work: Path) -> None:
    done = demo(work, "--once")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    for beginning in (
        "kafka nyc: ready at ",
        "kafka lon: ready at ",
        "kafka nyc: 1000 records in each of orders, payments; groups billing, audit have read some",
        "spark: warm, ",
        "airflow: ready at http://127.0.0.1:",
        "airflow: mirror__nyc_to_lon is unpaused and runs again and again, see http://127.0.0.1:",
        "airflow: mirror__nyc_to_lon mirrored 2,000 records, ",
        "airflow:   updated kafka://lon/nyc.orders",
        "twinlog translate: orders-0 at 100 is nyc.orders-0 at 100 (copied)",
        "twinlog translate: nyc.orders  0          120 ",
        "kafka lon: User:billing may read nyc.orders",
        "airflow: status__nyc_to_lon ended as success, see http://127.0.0.1:",
        "airflow:   source nyc: 3 topics, 6 partitions",  # with offset syncs
        "airflow:   target lon: 6 topics, 16 partitions",  # twins, journal, state, checkpoints and what was made
        "demo: everything is stopped",
    ):
        assert any(line.startswith(beginning) for line in lines), f"{beginning!r} is not in\n{done.stdout}"
    await_condition(lambda: not pids_with(str(work)), "nothing of the demo is left")


def test_ctrl_c_while_it_starts_stops_it_without_a_traceback(work: Path) -> None:
    environ = {**os.environ, "TWINLOG_WORK": str(work), "PYTHONPATH": str(places.INCLUDE)}
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "local.demo"],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as starting:
        assert starting.stdout is not None
        for line in starting.stdout:
            if line.startswith("kafka nyc: starting"):
                starting.send_signal(signal.SIGINT)
                break
        _, said = starting.communicate(timeout=DEMO_TIMEOUT_S)
    assert starting.returncode == 130
    assert said == "demo: interrupted while starting; everything is stopped\n"
    await_condition(lambda: not pids_with(str(work)), "nothing of the demo is left")


def test_stopping_where_none_runs_is_no_error(work: Path) -> None:
    done = demo(work, "--stop")
    assert done.returncode == 0
    assert done.stdout == "demo: none was running\n"


def test_a_second_demo_is_refused_and_told_how_to_stop_the_first(work: Path) -> None:
    with lock.held(work / "demo.lock", "The demo", "`make demo-stop`"):
        done = demo(work, "--once")
    assert done.returncode == 1
    assert (
        done.stderr == f"demo: The demo is running already, as process {os.getpid()}; stop it with `make demo-stop`.\n"
    )
    assert not (work / "demo").exists(), "the running demo's files are untouched"
