"""A permission of a Kafka cluster, and how the target's must look for the source's to hold there.

`safe` keeps MirrorMaker 2's rules: permissions on topics only, nobody is allowed to write to a mirrored topic, and
who was allowed all is allowed to read. `full`, for migrations, takes every permission on topics, groups and
transactional ids as it is. Denials travel: without them the copy would allow more than the original. Only one that
would deny Twinlog itself on the target stays behind, and what it denies to everybody is then allowed to nobody.

In `safe` mode a pattern is translated where the translation covers only names that the flow makes, as the source's
alias before them says. Under the same names and under custom ones, where the target has topics of its own beside the
twins, it is written out topic by topic. `full` keeps patterns, but where names get an ending: after a migration the
names are the target's own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from twinlog.model.naming import Custom, Identity, NamingPolicy, Prefixed

WILDCARD = "*"
EVERYBODY = "User:*"
OWN_NAMES = "twinlog."
"""How the groups and transactional ids begin that a flow uses on its target."""
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

    def covers(self, name: str) -> bool:
        """Whether a resource of this name, and of this type, is meant."""
        if self.pattern is Pattern.PREFIXED:
            return name.startswith(self.resource_name)
        return self.resource_name in (name, WILDCARD)

    @property
    def rule(self) -> str:
        return f"{self.permission} {self.operation} from {self.host}"


def acl_of(words: Sequence[str]) -> Acl:
    """The ACL whose fields these are, as `astuple` gives them."""
    resource_type, resource_name, pattern, principal, host, operation, permission = words
    return Acl(resource_type, resource_name, Pattern(pattern), principal, host, operation, permission)


@dataclass(frozen=True, slots=True)
class AclRules:
    """What one flow makes of the source's permissions."""

    mode: AclMode
    policy: NamingPolicy
    takes_topic: Callable[[str], bool]
    takes_group: Callable[[str], bool]
    topics: Sequence[str]
    """The source's topics that the flow mirrors, sorted."""
    principal: str = ""
    """Who Twinlog is on the target."""

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
    forget: frozenset[Acl] = frozenset()
    """What Twinlog put there once, and that is neither there any more nor wanted."""


@dataclass(frozen=True, slots=True)
class WantedAcls:
    """The permissions that the target needs for the source's to hold there."""

    acls: frozenset[Acl]
    kept_back: tuple[Acl, ...] = ()
    """Denials of the source, as they would be on the target, that would deny Twinlog itself."""


def wanted_acls(source: Iterable[Acl], rules: AclRules) -> WantedAcls:
    """What the source's permissions come to on the target."""
    translated = frozenset(there for acl in source for there in _translated(acl, rules))
    kept_back = frozenset(acl for acl in translated if _denies_us(acl, rules.principal))
    if not kept_back:
        return WantedAcls(translated)
    denials = [acl for acl in kept_back if acl.principal == EVERYBODY]
    twins = [rules.policy.target_name(topic) for topic in rules.topics]
    carried = (rest for acl in translated - kept_back for rest in _not_overruled(acl, denials, twins))
    return WantedAcls(frozenset(carried), tuple(sorted(kept_back)))


def compare_acls(wanted: frozenset[Acl], target: frozenset[Acl], made: frozenset[Acl]) -> AclDifference:
    """Only what is in `made`, that is what Twinlog has put on the target, is ever removed.

    What somebody has removed there, and nobody wants, is no longer Twinlog's: whoever grants it again, it is theirs.
    """
    return AclDifference(
        tuple(sorted(wanted - target)), tuple(sorted((made & target) - wanted)), made - target - wanted
    )


def _denies_us(acl: Acl, principal: str) -> bool:
    """Whether a denial hits something that Twinlog does on the target: anything with a twin, its own names, groups."""
    if acl.permission != "DENY" or acl.principal not in (EVERYBODY, principal):
        return False
    return acl.resource_type != TRANSACTIONAL_ID or _covers_own_names(acl)


def _covers_own_names(acl: Acl) -> bool:
    name = acl.resource_name
    if acl.pattern is Pattern.LITERAL:
        return name == WILDCARD or name.startswith(OWN_NAMES)
    return name.startswith(OWN_NAMES) or OWN_NAMES.startswith(name)


def _allows_own_names(acl: Acl) -> bool:
    """Whether this is what Twinlog itself was granted on the source, for flows that lead there."""
    return acl.permission == "ALLOW" and acl.resource_name.startswith(OWN_NAMES)


def _not_overruled(acl: Acl, denials: Sequence[Acl], twins: Sequence[str]) -> Iterator[Acl]:
    """What a permission still allows beside denials to everybody; a pattern that they touch is written out."""
    over = [denial for denial in denials if _may_overrule(denial, acl)]
    named = acl.pattern is Pattern.LITERAL and acl.resource_name != WILDCARD
    if over and not named and acl.resource_type != TOPIC:
        # Which groups and transactional ids there are, nobody can say: it can't be written out.
        return
    names = [acl.resource_name] if named else [twin for twin in twins if acl.covers(twin)]
    allowed = [name for name in names if not any(denial.covers(name) for denial in over)]
    if len(allowed) == len(names):
        yield acl
    else:
        for name in allowed:
            yield replace(acl, resource_name=name, pattern=Pattern.LITERAL)


def _may_overrule(denial: Acl, acl: Acl) -> bool:
    return (
        (acl.permission, acl.resource_type) == ("ALLOW", denial.resource_type)
        and denial.operation in ("ALL", acl.operation)
        and denial.host in (WILDCARD, acl.host)
    )


def _translated(acl: Acl, rules: AclRules) -> Iterator[Acl]:
    if acl.resource_type == TOPIC:
        allowed = acl if rules.mode is AclMode.FULL else _safe(acl)
        if allowed is not None:
            yield from _on_twins(allowed, rules)
    elif rules.mode is AclMode.FULL and _takes_clients(acl, rules) and not _allows_own_names(acl):
        yield acl


def _safe(acl: Acl) -> Acl | None:
    if acl.permission != "ALLOW":
        return acl
    if acl.operation == "WRITE":
        return None
    return replace(acl, operation="READ") if acl.operation == "ALL" else acl


def _takes_clients(acl: Acl, rules: AclRules) -> bool:
    if acl.resource_type != GROUP:
        return acl.resource_type == TRANSACTIONAL_ID
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
    before = _before_patterns(rules)
    if before is None:
        for name in covered:
            yield replace(acl, resource_name=rules.policy.target_name(name), pattern=Pattern.LITERAL)
    elif every and not before:
        yield acl
    else:
        start = "" if every else acl.resource_name
        yield replace(acl, resource_name=before + start, pattern=Pattern.PREFIXED)


def _before_patterns(rules: AclRules) -> str | None:
    """What the policy puts before every name that a pattern covers; None where patterns are written out."""
    policy = rules.policy
    if isinstance(policy, Prefixed):
        return policy.prefix
    if rules.mode is AclMode.SAFE:
        return None
    if isinstance(policy, Identity):
        return ""
    return policy.before if isinstance(policy, Custom) and not policy.after else None
