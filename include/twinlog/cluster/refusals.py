"""What a cluster did not do of a request for many things, and who was not allowed what, in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import kafka.errors as kafka_errors

from twinlog.cluster.principals import ANONYMOUS, principal_of
from twinlog.errors import ClusterError, NotAuthorizedError

__all__ = [
    "ANONYMOUS",
    "DENIED",
    "Refusal",
    "demand",
    "named",
    "not_allowed",
    "portions",
    "principal_of",
    "refusal",
    "refusal_named",
    "sentences",
]

T = TypeVar("T")

_NAMED_AT_MOST = 3


@dataclass(frozen=True, slots=True)
class Refusal:
    """One error code of an answer."""

    error: str
    """Kafka's name of it."""
    message: str
    not_allowed: bool
    """An ACL is missing."""


DENIED = Refusal("TopicAuthorizationFailed", "", not_allowed=True)


def refusal(code: int, message: str | None) -> Refusal | None:
    """The refusal that an error code stands for; None for 0."""
    if not code:
        return None
    found = refusal_named(kafka_errors.for_code(code).__name__)
    return replace(found, message=message) if message else found


def refusal_named(error: str) -> Refusal:
    """The refusal that stands behind an error's name, as metadata has it of a topic."""
    kind = getattr(kafka_errors, error)
    denied = issubclass(kind, kafka_errors.AuthorizationError)
    return Refusal(error.removesuffix("Error"), kind.description or "", denied)


def sentences(
    alias: str, principal: str, operation: str, refused: Mapping[str, Refusal], consequence: str
) -> Iterator[str]:
    """A sentence for each kind of refusal; `refused` is by resource, such as `topic orders`."""
    grouped: dict[tuple[str, bool, str], list[str]] = {}
    for resource, found in refused.items():
        # What a broker says of one topic is about that topic; of a missing permission nothing more is worth saying.
        said = "" if found.not_allowed else found.message
        grouped.setdefault((found.error, found.not_allowed, said), []).append(resource)
    for (error, not_allowed, said), resources in grouped.items():
        where = named(resources)
        if not_allowed:
            yield f"cluster {alias}: {principal} is not allowed {operation} on {where}, so {consequence}"
        else:
            yield f"cluster {alias}: {operation} on {where} was refused with {error} ({said}), so {consequence}"


def demand(alias: str, principal: str, operation: str, refused: Mapping[str, Refusal], consequence: str) -> None:
    """Raise what was refused, by resource, where anything was."""
    if not refused:
        return
    message = "; ".join(sentences(alias, principal, operation, refused, consequence))
    raise NotAuthorizedError(message) if any(one.not_allowed for one in refused.values()) else ClusterError(message)


def not_allowed(alias: str, principal: str, operation: str, resource: str, consequence: str) -> NotAuthorizedError:
    """The error of one missing permission, on a resource such as `group billing`."""
    return NotAuthorizedError(*sentences(alias, principal, operation, {resource: DENIED}, consequence))


def named(resources: Sequence[str]) -> str:
    """The first few by name, and how many more there are."""
    shown = ", ".join(resources[:_NAMED_AT_MOST])
    more = len(resources) - _NAMED_AT_MOST
    return f"{shown} and {more:,} more" if more > 0 else shown


def portions(items: Iterable[T], weight: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """Items in order, in lists whose weights sum up to `most` at most; one that is heavier alone goes alone.

    A controller writes each request as one batch of at most 10,000 metadata records.
    """
    portion: list[T] = []
    total = 0
    for item in items:
        more = weight(item)
        if portion and total + more > most:
            yield portion
            portion, total = [], 0
        portion.append(item)
        total += more
    if portion:
        yield portion
