"""What became of copying in another process, through a file: its result, or the error that ended it.

The file lies in a folder of whoever started the process, and both run the same Twinlog.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

from twinlog.errors import TwinlogError, of_kind
from twinlog.operations.mirror_result import CopyResult


def write_result(file: Path, copy: Callable[[], CopyResult]) -> bool:
    """Copy, and write down what became of it; whether it is to be called a success."""
    try:
        result = copy()
    except TwinlogError as error:
        file.write_bytes(pickle.dumps((None, type(error).__name__, str(error))))
        return False
    file.write_bytes(pickle.dumps((result, None, None)))
    return not result.failures


def read_result(file: Path) -> CopyResult | None:
    """The result; raises the error that was written; None where the process ended before it could say anything."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    result, kind, message = pickle.loads(content)  # noqa: S301 - written by our own process, see above
    if kind is not None:
        raise of_kind(kind, message)
    found: CopyResult = result
    return found
