"""Twinlog itself as one archive, so that Spark's Python workers can import it and nobody has to copy it to them.

Equal sources give equal bytes under an equal name, so it is made once a version, and Spark takes a second copy for the
first. It is made in a folder of whoever runs us, beside its name first, so that nobody ever sees half of it.

What Twinlog needs beside itself (see REQUIRED) is compiled for the most part, and must be installed in the Python of
Spark's executors.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from pathlib import Path

import twinlog

REQUIRED = ("pyarrow", "numpy", "kafka", "crc32c", "cramjam", "lz4", "zstandard")
"""The modules that copying imports."""

_SAME_DATE = (1980, 1, 1, 0, 0, 0)


def archive(folder: Path | None = None) -> Path:
    """The archive's file in `folder`, by default in the user's cache; made where it is not there yet. A process that
    was itself given the archive hands it on."""
    given = Path(twinlog.__file__).parent.parent
    if given.is_file():
        return given
    sources = _sources()
    digest = hashlib.sha256()
    for name, content in sources.items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    folder = folder or _cache()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = folder / f"twinlog-{digest.hexdigest()[:16]}.zip"
    if not file.exists():
        _write(file, sources)
    return file


def _sources() -> dict[str, bytes]:
    package = Path(twinlog.__file__).parent
    return {path.relative_to(package.parent).as_posix(): path.read_bytes() for path in sorted(package.rglob("*.py"))}


def _write(file: Path, sources: dict[str, bytes]) -> None:
    descriptor, unfinished = tempfile.mkstemp(dir=file.parent, prefix=".twinlog-")
    try:
        with os.fdopen(descriptor, "wb") as output, zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as made:
            for name, content in sources.items():
                made.writestr(zipfile.ZipInfo(name, _SAME_DATE), content, zipfile.ZIP_DEFLATED)
        Path(unfinished).replace(file)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "twinlog"
