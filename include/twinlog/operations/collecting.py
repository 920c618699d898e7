"""Python's collector of cycles, held back while a million small values are made of which none is in a cycle: it would
look through all of them again and again, for as long as everything else takes."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_held_back() -> Iterator[None]:
    """Inside, and not where somebody else holds it back already."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
