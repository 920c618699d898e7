"""A Python with what is installed here, less twinlog itself and whatever else is to be missing."""

from __future__ import annotations

import fnmatch
import subprocess
import sys
import sysconfig
from pathlib import Path

_OURS = ("*twinlog*",)


def bare_python(folder: Path, without: tuple[str, ...] = ()) -> Path:
    """Its interpreter; `without` are patterns of names in site-packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for installed in Path(sysconfig.get_path("purelib")).iterdir():
        if not any(fnmatch.fnmatch(installed.name, pattern) for pattern in (*_OURS, *without)):
            (packages / installed.name).symlink_to(installed)
    return folder / "bin" / "python"
