"""Several questions at once, each in a thread of its own, all answered within one time-out.

The threads are daemons: one that hangs can't hold anybody up. An error of ours is an answer; any other is raised.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

from twinlog.errors import ClusterUnreachableError, TwinlogError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_GRACE_S = 1.0
"""For the answer of a client that ends exactly at its time-out."""


class Asked(Generic[V]):
    """One question under way in a thread of its own."""

    def __init__(self, question: Callable[[], V], timeout_s: float, named: str) -> None:
        self._answers: queue.SimpleQueue[V | Exception] = queue.SimpleQueue()
        self._question = question
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s + _GRACE_S
        self._named = named
        threading.Thread(target=self._ask, name=f"asking {named}", daemon=True).start()

    def answer(self) -> V | TwinlogError:
        """The answer, or the error that it ended with; to be asked for once, and there when its time is up."""
        try:
            found = self._answers.get(timeout=max(0.0, self._deadline - time.monotonic()))
        except queue.Empty:
            return ClusterUnreachableError(f"{self._named} did not answer within {self._timeout_s:g} s")
        if isinstance(found, Exception) and not isinstance(found, TwinlogError):
            raise found
        return found

    def _ask(self) -> None:
        try:
            self._answers.put(self._question())
        except Exception as error:  # noqa: BLE001 - raised again by who waits, unless it is an answer
            self._answers.put(error)


def ask_all(
    questions: Mapping[K, Callable[[], V]], timeout_s: float, named: Callable[[K], str]
) -> dict[K, V | TwinlogError]:
    """The answer to each question, or the error that it ended with; `named` is who did not answer in time."""
    answers: queue.SimpleQueue[tuple[K, V | Exception]] = queue.SimpleQueue()

    def ask(key: K, question: Callable[[], V]) -> None:
        try:
            answers.put((key, question()))
        except Exception as error:  # noqa: BLE001 - raised again by who waits, unless it is an answer
            answers.put((key, error))

    for key, question in questions.items():
        threading.Thread(target=ask, args=(key, question), name=f"asking {key}", daemon=True).start()
    found: dict[K, V | TwinlogError] = {}
    deadline = time.monotonic() + timeout_s + _GRACE_S
    while len(found) < len(questions):
        try:
            key, answer = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            break
        if isinstance(answer, Exception) and not isinstance(answer, TwinlogError):
            raise answer
        found[key] = answer
    for key in questions:
        if key not in found:
            found[key] = ClusterUnreachableError(f"{named(key)} did not answer within {timeout_s:g} s")
    return found
