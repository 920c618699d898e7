"""One after the other, in the order in which they came; all on the event loop's thread.

Who waits for a broker's quota to pass must not be overtaken: a batch that is sent before an earlier one of its
partition is out of sequence, and the broker refuses it.
"""

from __future__ import annotations

from collections import deque

from kafka.future import Future


class Turns:
    """A place where one is at a time."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting: deque[Future] = deque()

    @property
    def taken(self) -> bool:
        """Whether somebody is there, or is about to be."""
        return self._taken

    async def take(self) -> None:
        """Return when everybody who came before has gone."""
        if self._taken:
            turn = Future()
            self._waiting.append(turn)
            await turn
        self._taken = True

    def give(self) -> None:
        """Go, and let the next one in; nobody who comes now is before them."""
        if self._waiting:
            self._waiting.popleft().success(None)
        else:
            self._taken = False
