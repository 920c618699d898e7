"""A permission of a Kafka cluster, and how the target's must look for the source's to hold there.

`safe` keeps MirrorMaker 2's rules: permissions on topics only, nobody is allowed to write to a mirrored topic, and
who was allowed all is allowed to read. `full`, for migrations, takes every permission on topics, groups and
transactional ids as it is. Denials always travel: without them the copy would allow more than the original.

A pattern is translated where the translation covers only names that the flow makes. Where it does not (`*` under the
same names, a prefix where names get an ending), it is written out topic by topic.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from twinlog.model.naming import Custom, Identity, NamingPolicy, Prefixed

WILDCARD = "*"
TOPIC, GROUP, TRANSACTIONAL_ID = "topic", "group", "transactional-id"


class Pattern(StrEnum):
    """How a permission's resource name is matched."""

    LITERAL = "literal"
    PREFIXED = "prefixed"


class AclMode(StrEnum):
    """Which permissions travel."""

    SAFE = "safe"
    FULL = "full"


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """One permission, in the words of Kafka's own tools."""

    resource_type: str
    resource_name: str
    pattern: Pattern
    principal: str
    host: str
    operation: str
    permission: str
    """ALLOW or DENY."""

    @property
    def resource(self) -> str:
        ending = "*" if self.pattern is Pattern.PREFIXED else ""
        return f"{self.resource_type} {self.resource_name}{ending}"

    @property
    def rule(self) -> str:
        return f"{self.permission} {self.operation} from {self.host}"


@dataclass(frozen=True, slots=True)
class AclRules:
    """What one flow makes of the source's permissions."""

    mode: AclMode
    policy: NamingPolicy
    takes_topic: Callable[[str], bool]
    takes_group: Callable[[str], bool]
    topics: Sequence[str]
    """The source's topics that the flow mirrors, sorted."""

    def beginning_with(self, prefix: str) -> Sequence[str]:
        """Those of the topics that a prefixed pattern covers; quick, since there may be thousands of both."""
        after = prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else None
        first = bisect_left(self.topics, prefix)
        return self.topics[first:] if after is None else self.topics[first : bisect_left(self.topics, after)]


@dataclass(frozen=True, slots=True)
class AclDifference:
    """What is missing on the target, and what Twinlog put there that the source has no longer."""

    add: tuple[Acl, ...]
    remove: tuple[Acl, ...]


def wanted_acls(source: Iterable[Acl], rules: AclRules) -> frozenset[Acl]:
    """The permissions that the target needs for the source's to hold there."""
    return frozenset(translated for acl in source for translated in _translated(acl, rules))


def compare_acls(wanted: frozenset[Acl], target: frozenset[Acl], made: frozenset[Acl]) -> AclDifference:
    """Only what is in `made`, that is what Twinlog has put on the target, is ever removed."""
    return AclDifference(tuple(sorted(wanted - target)), tuple(sorted((made & target) - wanted)))


def _translated(acl: Acl, rules: AclRules) -> Iterator[Acl]:
    if acl.resource_type == TOPIC:
        allowed = acl if rules.mode is AclMode.FULL else _safe(acl)
        if allowed is not None:
            yield from _on_twins(allowed, rules)
    elif rules.mode is AclMode.FULL and (
        acl.resource_type == TRANSACTIONAL_ID or (acl.resource_type == GROUP and _takes_group(acl, rules))
    ):
        yield acl


def _safe(acl: Acl) -> Acl | None:
    if acl.permission != "ALLOW":
        return acl
    if acl.operation == "WRITE":
        return None
    return replace(acl, operation="READ") if acl.operation == "ALL" else acl


def _takes_group(acl: Acl, rules: AclRules) -> bool:
    everyone = acl.pattern is Pattern.PREFIXED or acl.resource_name == WILDCARD
    return everyone or rules.takes_group(acl.resource_name)


def _on_twins(acl: Acl, rules: AclRules) -> Iterator[Acl]:
    every = acl.pattern is Pattern.LITERAL and acl.resource_name == WILDCARD
    if acl.pattern is Pattern.LITERAL and not every:
        if rules.takes_topic(acl.resource_name):
            yield replace(acl, resource_name=rules.policy.target_name(acl.resource_name))
        return
    covered = rules.topics if every else rules.beginning_with(acl.resource_name)
    if not covered:
        return
    before = _prefix_made(rules.policy)
    if every and before == "" and rules.mode is AclMode.FULL:
        yield acl
    elif before is None or (every and before == ""):
        for name in covered:
            yield replace(acl, resource_name=rules.policy.target_name(name), pattern=Pattern.LITERAL)
    else:
        start = "" if every else acl.resource_name
        yield replace(acl, resource_name=before + start, pattern=Pattern.PREFIXED)


def _prefix_made(policy: NamingPolicy) -> str | None:
    """What the policy puts before every name where that is all it does; None where it does more."""
    if isinstance(policy, Prefixed):
        return policy.prefix
    if isinstance(policy, Identity):
        return ""
    return policy.before if isinstance(policy, Custom) and not policy.after else None
