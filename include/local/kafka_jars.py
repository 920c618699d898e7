"""`python -m local.kafka_jars`: Kafka's jars, from Maven, into the work folder.

What is wanted stands in pom.xml beside this file. The folder is complete or it is not there: Maven fills
a neighbour that takes its place only when all jars have arrived. The pom's digest is kept beside the jars, so
that a second call does nothing and a changed pom brings the jars anew.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from local import preconditions
from local.errors import LocalError, PreconditionError, StartError
from local.places import kafka_jars_folder

POM = Path(__file__).with_name("pom.xml")

_NEEDED_BYTES = 512 << 20  # the jars are some 60 MB, and Maven keeps its own copy of each and its plugins
_STAMP = "pom.sha256"
_LAST_LINES = 5


def class_path(folder: Path | None = None) -> str:
    """The class path of the fetched jars; refuses where they have not been fetched."""
    folder = folder or kafka_jars_folder()
    if not (folder / _STAMP).exists():
        raise PreconditionError(f"Kafka's jars are not in {folder}; run `make setup`.")
    return str(folder / "*")


def class_archive(folder: Path | None = None) -> Path:
    """Where the classes in these jars are kept as the JVM has them in memory."""
    return (folder or kafka_jars_folder()) / "classes.jsa"


def archived_classes(folder: Path | None = None) -> tuple[str, ...]:
    """The JVM's options to use that archive, where there is one; a JVM that it does not fit does without."""
    archive = class_archive(folder)
    return (f"-XX:SharedArchiveFile={archive}",) if archive.exists() else ()


def fetch(folder: Path, report: Callable[[str], None] = print) -> None:
    digest = hashlib.sha256(POM.read_bytes()).hexdigest()
    stamp = folder / _STAMP
    if stamp.exists() and stamp.read_text() == digest:
        report(f"kafka jars: already in {folder}")
        return
    preconditions.java()
    maven = preconditions.maven()
    preconditions.free_space(folder, _NEEDED_BYTES, "Fetching Kafka's jars")
    report(f"kafka jars: fetching with Maven into {folder}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kafka-jars.", dir=folder.parent) as scratch:
        arriving = Path(scratch) / "jars"
        _copy_dependencies(maven, arriving)
        (arriving / _STAMP).write_text(digest)
        if folder.exists():
            folder.rename(Path(scratch) / "replaced")
        arriving.rename(folder)
    report(f"kafka jars: {len(list(folder.glob('*.jar')))} jars ready")


def _copy_dependencies(maven: Path, destination: Path) -> None:
    command = [
        str(maven),
        "--quiet",
        "--batch-mode",
        f"--file={POM}",
        "dependency:copy-dependencies",
        "-DincludeScope=runtime",
        f"-DoutputDirectory={destination}",
    ]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = "\n".join(done.stdout.strip().splitlines()[-_LAST_LINES:])
        raise StartError(f"Maven could not fetch Kafka's jars, exit code {done.returncode}; it said:\n{last}")


def main() -> int:
    try:
        fetch(kafka_jars_folder())
    except LocalError as error:
        print(f"kafka jars: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
