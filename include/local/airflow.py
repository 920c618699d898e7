"""A whole Airflow on this machine, on a home folder of its own.

The same four processes as `airflow standalone` runs, but each is our own child: one that dies is noticed,
each has its own log file, and all end with us. What always holds:

- it listens on the loopback address only, and still asks for a login: any web page a person visits can
  reach 127.0.0.1, and this Airflow can run code;
- the password is made here, in a file only its owner can read; Airflow would print one it made itself into
  its log;
- no AIRFLOW variable of the caller's shell reaches it, or a demo would migrate somebody's real database.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from local import places, ports, processes
from local.airflow_client import AirflowCallError, AirflowClient
from local.errors import StartError

USER = "admin"
COMPONENTS = ("api-server", "scheduler", "dag-processor", "triggerer")

_AIRFLOW = (sys.executable, "-m", "airflow")
_MIGRATION_TIMEOUT_S = 300
_START_TIMEOUT_S = 240
_STOP_GRACE_S = 30


@dataclass(frozen=True)
class LocalAirflow:
    """A running Airflow."""

    url: str
    home: Path
    password_file: Path
    client: AirflowClient


@contextmanager
def start(
    home: Path,
    *,
    environ: Mapping[str, str] | None = None,
    port: int | None = None,
    dags: Path = places.REPOSITORY / "dags",
    plugins: Path = places.REPOSITORY / "plugins",
    report: Callable[[str], None] = print,
) -> Iterator[LocalAirflow]:
    """Runs Airflow while inside; `environ` is what tasks see beside the caller's own environment."""
    home.mkdir(parents=True, exist_ok=True)
    home.chmod(0o700)
    password_file = _make_password(home)
    if port is None:
        port = ports.free_ports(1)[0]
    else:
        ports.require_free([port])
    settings = _settings(home, password_file, port, dags, plugins)
    everything = {**_without_airflow(os.environ), **settings, **(environ or {})}
    report("airflow: preparing its database")
    _migrate(home, everything)
    report("airflow: starting " + ", ".join(COMPONENTS))
    running = LocalAirflow(
        settings["AIRFLOW__API__BASE_URL"],
        home,
        password_file,
        AirflowClient(settings["AIRFLOW__API__BASE_URL"], USER, password_file),
    )
    started: list[processes.Process] = []
    try:
        for name in COMPONENTS:
            log = home / f"{name}.log"
            started.append(processes.Process(f"airflow {name}", [*_AIRFLOW, name], log, everything))
        for process in started:
            processes.await_ready(process, lambda: _ready(started, running.client), _START_TIMEOUT_S)
        report(f"airflow: ready at {running.url}")
        yield running
    finally:
        processes.stop(started, _STOP_GRACE_S)
        report("airflow: stopped")


def _make_password(home: Path) -> Path:
    """The login's file, in the form of Airflow's SimpleAuthManager; an old one is kept."""
    file = home / "password.json"
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        file.chmod(0o600)
        return file
    with os.fdopen(descriptor, "w") as output:
        json.dump({USER: secrets.token_urlsafe(16)}, output)
    return file


def _without_airflow(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not name.startswith("AIRFLOW")}


def _settings(home: Path, password_file: Path, port: int, dags: Path, plugins: Path) -> dict[str, str]:
    url = f"http://{ports.HOST}:{port}"
    worker_log_port, trigger_log_port = ports.free_ports(2)
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(plugins),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(password_file),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__API__HOST": ports.HOST,
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(worker_log_port),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(trigger_log_port),
        # The topology is not a DAG file, so a change in it is seen when its DAG file is parsed again.
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "10",
        "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "PYTHONPATH": str(places.INCLUDE),
        "PYSPARK_PYTHON": sys.executable,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
    }


def _migrate(home: Path, environ: Mapping[str, str]) -> None:
    log = home / "migrate.log"
    process = processes.Process("airflow db migrate", [*_AIRFLOW, "db", "migrate"], log, environ)
    try:
        ended = process.wait(_MIGRATION_TIMEOUT_S)
    finally:
        if process.running:
            process.kill()
    if not ended or process.exit_code != 0:
        raise StartError(
            f"Airflow's database in {home} could not be prepared; the last lines of {log}:\n{process.last_lines()}"
        )


def _ready(started: list[processes.Process], client: AirflowClient) -> bool:
    for process in started:
        if not process.running:
            raise StartError(
                f"{process.name} ended with exit code {process.exit_code} while starting; the last lines of "
                f"{process.log}:\n{process.last_lines()}"
            )
    try:
        return not client.unhealthy()
    except AirflowCallError:
        return False  # the API server is not up yet; await_ready has the time limit
