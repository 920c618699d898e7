"""A storage that fails in the middle of something that can be told as one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa  # noqa: TID253 - no DAG imports an operation at its top

from twinlog.errors import LedgerError


@contextmanager
def storage_of(what: str) -> Iterator[None]:
    """Inside the block, a storage that fails is an error of ours; S3's, too, are of the operating system's kind."""
    try:
        yield
    except (OSError, pa.ArrowInvalid) as failure:
        raise LedgerError(f"{what} can't be read: {failure}") from failure
