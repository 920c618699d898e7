"""`python -m local.debian chromium`: a Debian package, where its command is not there yet.

For what Python packages cannot bring, such as the browser that tests drive. Nothing is touched when the command
is present; where the package cannot be installed, one sentence says why and what to do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from local.errors import LocalError, PreconditionError

_LAST_LINES = 5


def ensure(package: str, report: Callable[[str], None] = print, environ: Mapping[str, str] = os.environ) -> None:
    """Makes the command that is named as its package available."""
    path = environ.get("PATH", "")
    found = shutil.which(package, path=path)
    if found is not None:
        report(f"{package}: already at {found}")
        return
    apt = shutil.which("apt-get", path=path)
    if apt is None:
        raise PreconditionError(f"{package} is missing and there is no apt-get here; install {package} yourself.")
    if os.geteuid() != 0:
        raise PreconditionError(
            f"{package} is missing and only root may install it; run `sudo apt-get install {package}`."
        )
    report(f"{package}: installing the Debian package")
    unattended = {**environ, "DEBIAN_FRONTEND": "noninteractive"}
    _run([apt, "update", "--quiet"], package, unattended)
    _run([apt, "install", "--quiet", "--yes", "--no-install-recommends", package], package, unattended)
    found = shutil.which(package, path=path)
    if found is None:
        raise LocalError(f"Debian's package {package} was installed, but it brings no command of that name.")
    report(f"{package}: ready at {found}")


def _run(command: Sequence[str], package: str, environ: Mapping[str, str]) -> None:
    done = subprocess.run(
        command,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = "\n".join(done.stdout.strip().splitlines()[-_LAST_LINES:])
        raise LocalError(
            f"{package} could not be installed, for `{' '.join(command)}` ended with exit code {done.returncode}; "
            f"it said:\n{last}"
        )


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        print("usage: python -m local.debian PACKAGE...", file=sys.stderr)
        return 2
    try:
        for package in arguments:
            ensure(package)
    except LocalError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
