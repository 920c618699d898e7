"""Waiting for what another process brings about."""

from __future__ import annotations

import time
from collections.abc import Callable

NOT_HUNG_S = 30.0
"""What does not hang is over by then on the busiest machine; what hangs waits for a library's minute, or for ever."""


def await_condition(condition: Callable[[], bool], what: str, timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s:.0f} s: {what}"
        time.sleep(0.05)
