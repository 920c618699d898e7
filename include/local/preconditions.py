"""What must be true of the machine before anything is started; each check refuses with one sentence.

A check changes nothing, so a refusal leaves the machine as it was.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from local.errors import PreconditionError

JAVA_MINIMUM = 17  # what Kafka 4 brokers and Spark 4 are compiled for
MAVEN_MINIMUM = (3, 6)

_VERSION_TIMEOUT_S = 60


def java(environ: Mapping[str, str] = os.environ) -> Path:
    """The `java` that will be run: of JAVA_HOME where that is set, of PATH otherwise."""
    advice = f"install a JDK {JAVA_MINIMUM} or newer, or point JAVA_HOME to one"
    command = _java_command(environ, advice)
    answer = _first_output([str(command), "-version"], f"Java at {command} does not run; {advice}")
    match = re.search(r'version "(\d+)(?:\.(\d+))?', answer)
    if match is None:
        raise PreconditionError(f"Java at {command} does not say its version; {advice}.")
    # Java 8 and before call themselves 1.8.
    major = int(match[2] or 0) if match[1] == "1" else int(match[1])
    if major < JAVA_MINIMUM:
        raise PreconditionError(f"Java at {command} is version {major}, which is too old; {advice}.")
    return command


def _java_command(environ: Mapping[str, str], advice: str) -> Path:
    home = environ.get("JAVA_HOME")
    if home:
        command = Path(home, "bin", "java")
        if not os.access(command, os.X_OK):
            raise PreconditionError(f"JAVA_HOME is {home}, which has no bin/java; {advice}.")
        return command
    found = shutil.which("java", path=environ.get("PATH", ""))
    if found is None:
        raise PreconditionError(f"Java was not found on PATH; {advice}.")
    return Path(found)


def maven(environ: Mapping[str, str] = os.environ) -> Path:
    """The `mvn` of PATH."""
    wanted = ".".join(map(str, MAVEN_MINIMUM))
    advice = f"install Maven {wanted} or newer"
    found = shutil.which("mvn", path=environ.get("PATH", ""))
    if found is None:
        raise PreconditionError(f"Maven's mvn was not found on PATH; {advice}.")
    answer = _first_output([found, "--batch-mode", "-version"], f"Maven at {found} does not run; {advice}")
    match = re.search(r"Apache Maven (\d+)\.(\d+)", answer)
    if match is None:
        raise PreconditionError(f"Maven at {found} does not say its version; {advice}.")
    if (int(match[1]), int(match[2])) < MAVEN_MINIMUM:
        raise PreconditionError(f"Maven at {found} is version {match[1]}.{match[2]}, which is too old; {advice}.")
    return Path(found)


def _first_output(command: list[str], failure: str) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PreconditionError(f"{failure} ({error}).") from error
    if done.returncode != 0:
        raise PreconditionError(f"{failure} (exit code {done.returncode}).")
    return done.stdout


def free_space(folder: Path, needed_bytes: int, purpose: str) -> None:
    """Refuses where the disk below `folder`, which need not exist yet, is nearly full."""
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free_bytes = shutil.disk_usage(existing).free
    if free_bytes < needed_bytes:
        raise PreconditionError(
            f"{purpose} needs {needed_bytes >> 20} MB free on the disk of {folder}, which has "
            f"{free_bytes >> 20} MB; free some space, or choose another folder."
        )


def unique(names: Iterable[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise PreconditionError(f"{what} {name!r} is given twice; give each its own name.")
        seen.add(name)
