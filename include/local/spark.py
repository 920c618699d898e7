"""Real Spark on this machine, from the pip package: a Connect server, or a standalone master with workers.

What is yielded has run a query, or has all its workers; when the `with` ends, or this process does in any
way, nothing of it is left running. Python workers run this interpreter, or another that is named, and can import what
is installed there: twinlog has to be brought along. Everything Spark writes lies below the given folder, which is also
its working directory: give jobs absolute paths.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from local import ports, preconditions, processes
from local.errors import PreconditionError
from local.places import INCLUDE
from local.ports import HOST
from local.processes import Process, await_ready

Report = Callable[[str], None]

_NEEDED_BYTES = 1 << 30
_START_TIMEOUT_S = 180.0
_ASK_S = 60.0
_STOP_GRACE_S = 10.0
_CONNECT_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"


@contextmanager
def connect_server(
    folder: Path,
    *,
    port: int | None = None,
    master: str = "local[2]",
    memory_mb: int = 1024,
    conf: Mapping[str, str] | None = None,
    python: Path | None = None,
    report: Report = print,
) -> Iterator[str]:
    """A warm Spark Connect server; yields its `sc://` address."""
    port = _port(port)
    environ = _environment(folder, python)
    settings = {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": HOST,
        "spark.driver.host": HOST,
        # The driver only plans and hands out work, so starting quickly is worth more than compiling well.
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        **(conf or {}),
    }
    command = [str(_spark_home() / "bin" / "spark-submit"), "--class", _CONNECT_SERVER]
    command += ["--master", master, "--driver-memory", f"{memory_mb}m", "--name", "twinlog"]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    # spark-internal: the class is one of Spark's own jars, so there is no application file.
    command.append("spark-internal")
    url = f"sc://{HOST}:{port}"
    report(f"spark: starting a Connect server on {master}")
    server = Process("the Spark Connect server", command, folder / "connect.log", environ, folder)
    try:
        await_ready(server, lambda: ports.is_open(port) and _runs_a_query(url, environ), _START_TIMEOUT_S)
        report(f"spark: ready at {url}")
        yield url
    finally:
        processes.stop([server], _STOP_GRACE_S)
        report("spark: stopped")


@contextmanager
def standalone(
    folder: Path,
    *,
    workers: int,
    cores: int = 1,
    memory_mb: int = 1024,
    port: int | None = None,
    python: Path | None = None,
    report: Report = print,
) -> Iterator[str]:
    """A standalone master; cores and memory are each worker's. Yields its `spark://` address."""
    port = _port(port)
    environ = _environment(folder, python) | {
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }
    spark_class = str(_spark_home() / "bin" / "spark-class")
    url = f"spark://{HOST}:{port}"
    page, *worker_pages = ports.free_ports(1 + workers)
    report(f"spark: starting a master and {workers} workers")
    started: list[Process] = []
    try:
        master = [spark_class, _MASTER, "--host", HOST, "--port", str(port), "--webui-port", str(page)]
        started.append(Process("the Spark master", master, folder / "master.log", environ, folder))
        for number, worker_page in enumerate(worker_pages):
            worker = [spark_class, _WORKER, "--host", HOST, "--webui-port", str(worker_page)]
            worker += ["--cores", str(cores), "--memory", f"{memory_mb}m"]
            worker += ["--work-dir", str(folder / f"worker-{number}"), url]
            log = folder / f"worker-{number}.log"
            started.append(Process(f"Spark worker {number}", worker, log, environ, folder))
        for process in started:
            await_ready(process, lambda: _alive_workers(page) == workers, _START_TIMEOUT_S)
        report(f"spark: ready at {url}")
        yield url
    finally:
        # Workers first: one that loses its master keeps trying to reach it.
        processes.stop(reversed(started), _STOP_GRACE_S)
        report("spark: stopped")


def _port(port: int | None) -> int:
    if port is None:
        return ports.free_ports(1)[0]
    ports.require_free([port])
    return port


def _spark_home() -> Path:
    package = importlib.util.find_spec("pyspark")
    home = Path(package.submodule_search_locations[0]) if package and package.submodule_search_locations else None
    # pyspark-client alone has the name and none of the jars.
    if home is None or not (home / "jars").is_dir():
        raise PreconditionError(f"pyspark with its jars is not installed in {sys.prefix}; run `make setup`.")
    return home


def _environment(folder: Path, python: Path | None) -> dict[str, str]:
    java = preconditions.java().resolve()
    preconditions.free_space(folder, _NEEDED_BYTES, "Spark")
    folder.mkdir(parents=True, exist_ok=True)
    # Another Spark's variables would lead to its jars, its master or its settings.
    environ = {key: value for key, value in os.environ.items() if not key.startswith("SPARK_") and key != "PYTHONPATH"}
    return environ | {
        "JAVA_HOME": str(java.parent.parent),
        "PYSPARK_PYTHON": str(python or sys.executable),
        "SPARK_HOME": str(_spark_home()),
        "SPARK_LOCAL_DIRS": str(folder / "scratch"),
        "SPARK_LOCAL_IP": HOST,
    }


def _runs_a_query(url: str, environ: Mapping[str, str]) -> bool:
    # In a process of its own: one process holds Connect sessions or classic ones, and the caller chooses.
    try:
        done = subprocess.run(
            [sys.executable, "-m", "local.spark_probe", url],
            env={**environ, "PYTHONPATH": str(INCLUDE)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ASK_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _alive_workers(page: int) -> int | None:
    """As the master's page says; None while it does not answer."""
    try:
        with urllib.request.urlopen(f"http://{HOST}:{page}/json/", timeout=_ASK_S) as answer:
            return int(json.load(answer)["aliveworkers"])
    except (OSError, ValueError):  # a page that is not JSON is there before the one that is
        return None
