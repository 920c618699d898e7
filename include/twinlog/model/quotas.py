"""Client quotas: of which client, which limit, and what a migration changes on the target.

A limit that the target has already, and that Twinlog did not set, stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Quota:
    """One limit of one kind of client, such as producer_byte_rate of user alice."""

    entity: tuple[tuple[str, str | None], ...]
    """Pairs of type and name, sorted; the name None stands for the default of that type."""
    key: str

    @property
    def entity_words(self) -> str:
        return ", ".join(f"{kind} {'(default)' if name is None else name}" for kind, name in self.entity)

    def is_of(self, user: str) -> bool:
        return dict(self.entity).get("user") == user

    @property
    def is_for_everybody(self) -> bool:
        """Whether it holds for every user and client that has no limit of its own."""
        return all(kind != "ip" and name is None for kind, name in self.entity)


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """A limit to set, or with `after` None to remove."""

    quota: Quota
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class QuotaDifference:
    """What `full` mode changes, and what Twinlog set once that is neither there any more nor wanted."""

    changes: tuple[QuotaChange, ...] = ()
    forget: frozenset[Quota] = frozenset()


def compare_quotas(
    source: Mapping[Quota, float], target: Mapping[Quota, float], made: frozenset[Quota]
) -> QuotaDifference:
    """The changes are limits that are missing, and those that Twinlog set and that differ or are gone.

    A limit that somebody has removed, and that the source has not, is no longer Twinlog's.
    """
    changes = [
        QuotaChange(quota, target.get(quota), value)
        for quota, value in source.items()
        if target.get(quota) != value and (quota not in target or quota in made)
    ]
    changes += [QuotaChange(quota, target[quota], None) for quota in made if quota in target and quota not in source]
    return QuotaDifference(tuple(sorted(changes, key=_by_quota)), made - target.keys() - source.keys())


def _by_quota(change: QuotaChange) -> tuple[tuple[tuple[str, str], ...], str]:
    return tuple((kind, name or "") for kind, name in change.quota.entity), change.quota.key
