"""Waking coroutines of the event loop. A notification that nobody waits for is kept for the next one who does."""

from __future__ import annotations

from kafka.future import Future


class Signal:
    """Any number that wait, any number that notify; all on the event loop's thread."""

    def __init__(self) -> None:
        self._raised = False
        self._waiting: list[Future] = []

    def notify(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._raised = not waiting
        for future in waiting:
            future.success(None)

    async def wait(self) -> None:
        """Return at the next notification, or at once where one came while nobody waited."""
        if self._raised:
            self._raised = False
            return
        future = Future()
        self._waiting.append(future)
        await future
