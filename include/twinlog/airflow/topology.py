"""The topology that Airflow's processes use: the file's, or while that is broken, its last good version.

A mistake in the file must not stop the flows that run: they go on as the file said when it was last right. What it
says then, as text, is kept in a file that only its owner can read, in the home of each Airflow process that has read
it. `dags/twinlog_topology.py` shows the mistake, once, as an import error.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from twinlog.airflow.settings import own_folder, site_name, topology_path
from twinlog.errors import TopologyError
from twinlog.intake.topology_file import load
from twinlog.model.topology import Topology

log = logging.getLogger(__name__)


def topology_in_use() -> Topology:
    """What the file says, or said when it was last right; an error where it never was."""
    topology = _in_use(topology_path())
    return replace(topology, site=site_name() or topology.site)


def _in_use(path: Path) -> Topology:
    kept = kept_version(path)
    try:
        return _load_and_keep(path, kept)
    except TopologyError as broken:
        if not kept.exists():
            raise
        first = str(broken).splitlines()[0]
        log.warning("%s can't be used as it stands, so its last good version holds: %s", path, first)
        return load(path, content=kept)


def kept_version(path: Path) -> Path:
    """Where the last good version of the file at `path` is kept."""
    return own_folder() / f"topology-{hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:12]}.yaml"


def _load_and_keep(path: Path, kept: Path) -> Topology:
    try:
        text = path.read_bytes()
    except OSError:
        return load(path)  # says what is wrong
    with contextlib.suppress(OSError):
        if kept.read_bytes() == text:
            return load(path, content=kept)
    with _beside(kept, text) as written:
        # From the copy, so that what is kept is what was looked at, whoever edits the file meanwhile.
        topology = load(path, content=written)
        if written != path:
            written.replace(kept)
    return topology


@contextlib.contextmanager
def _beside(kept: Path, text: bytes) -> Iterator[Path]:
    """A file with the text in the folder of `kept`; the original where nothing can be written there."""
    try:
        kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, name = tempfile.mkstemp(dir=kept.parent, prefix=".topology-")
    except OSError as failure:
        log.warning("the topology's last good version can't be kept: %s", failure)
        yield topology_path()
        return
    try:
        with os.fdopen(descriptor, "wb") as output:
            output.write(text)
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
