"""An s3 on this machine: moto's server, in a Python environment of its own.

The environment lies in the work folder and is made when it is first asked for, and again when requirements-s3.txt has
changed; it is complete or it is not there.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local import ports, processes
from local.places import REPOSITORY, work_folder
from local.processes import Process, await_ready

REQUIREMENTS = REPOSITORY / "requirements-s3.txt"

_START_TIMEOUT_S = 60.0
_STOP_GRACE_S = 5.0


@contextmanager
def s3_server(folder: Path) -> Iterator[str]:
    """The address of an s3 without buckets, which is gone when this ends."""
    (port,) = ports.free_ports(1)
    command = [str(_environment() / "bin" / "python"), "-m", "moto.server", "-H", ports.HOST, "-p", str(port)]
    server = Process("s3", command, folder / "s3.log")
    try:
        await_ready(server, lambda: ports.is_open(port), _START_TIMEOUT_S)
        yield f"http://{ports.HOST}:{port}"
    finally:
        processes.stop([server], _STOP_GRACE_S)


def _environment() -> Path:
    digest = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:16]
    place = work_folder() / f"s3-server-{digest}"
    if place.exists():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    uv = Path(sys.executable).with_name("uv")
    with tempfile.TemporaryDirectory(prefix="s3-server.", dir=place.parent) as scratch:
        arriving = Path(scratch) / "environment"
        python = arriving / "bin" / "python"
        # Called by its modules and never by its scripts, which name the place that it was made at.
        for command in (
            [uv, "venv", "--quiet", "--python", sys.executable, arriving],
            [uv, "pip", "install", "--quiet", "--python", python, "-r", REQUIREMENTS],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        arriving.rename(place)
    return place
