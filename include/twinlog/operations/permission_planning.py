"""What a flow's permissions, quotas and users need on the target, from what both clusters say."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from twinlog.cluster.acl_admin import read_acls
from twinlog.cluster.client_limits import read_quotas, read_scram_users
from twinlog.cluster.refusals import Refusal, named, sentences
from twinlog.model.acls import Acl, AclMode, AclRules, WantedAcls, compare_acls, wanted_acls
from twinlog.model.quotas import QuotaDifference, compare_quotas
from twinlog.operations.flow_gate import record_of
from twinlog.operations.sync_result import QuotaRow, ScramUser
from twinlog.operations.sync_scope import Memory, SyncRules
from twinlog.operations.twin_planning import Sides

NO_QUOTAS = QuotaDifference()

_CLUSTER = "the cluster"


@dataclass(frozen=True)
class AclPlan:
    """The part of a plan that is about ACLs."""

    add: tuple[Acl, ...] = ()
    remove: tuple[Acl, ...] = ()
    forget: frozenset[Acl] = frozenset()
    failed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    compared: bool = False
    withheld: frozenset[Acl] | None = None
    """What the source allows and the target is not to allow while topics are mirrored; None where it is not known."""


@dataclass(frozen=True)
class ClientPlan:
    """Quotas to copy, and what both clusters have of quotas and users."""

    quotas: QuotaDifference = NO_QUOTAS
    quota_rows: tuple[QuotaRow, ...] = ()
    users: tuple[ScramUser, ...] = ()
    failed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


async def plan_acls(sides: Sides, rules: SyncRules, memory: Memory, topics: Collection[str]) -> AclPlan:
    """Compare the ACLs; `topics` are those that the flow mirrors, as the source calls them."""
    here = await read_acls(sides.source)
    if here.no_authorizer:
        return AclPlan(compared=True)
    if here.refused is not None:
        return AclPlan(failed=_refused(sides.source.alias, rules.source_principal, "DESCRIBE", here.refused))
    # What a switchover denies on the source holds there only.
    blocked = (await record_of(rules.flow, sides.target)).write_block
    own = here.acls - memory.opposite.acls - frozenset(blocked)
    acl_rules = AclRules(
        rules.acl_mode, rules.policy, rules.takes, rules.groups.accepts, sorted(topics), rules.target_principal
    )
    wanted = wanted_acls(own, acl_rules)
    allowed = wanted_acls(own, replace(acl_rules, mode=AclMode.FULL)).acls
    withheld = frozenset(acl for acl in allowed - wanted.acls if acl.permission == "ALLOW")
    there = await read_acls(sides.target)
    if there.no_authorizer:
        count = len(wanted.acls)
        note = f"cluster {sides.target.alias} has no authorizer, so {count:,} ACLs of the source are not copied"
        return AclPlan(notes=(note,) if count else (), compared=True)
    if there.refused is not None:
        return AclPlan(failed=_refused(sides.target.alias, rules.target_principal, "DESCRIBE", there.refused))
    found = compare_acls(wanted.acls, there.acls, memory.here.acls)
    notes = _kept_back(wanted, sides.target.alias, rules.target_principal)
    return AclPlan(found.add, found.remove, found.forget, notes=notes, compared=True, withheld=withheld)


async def plan_clients(sides: Sides, rules: SyncRules, memory: Memory) -> ClientPlan:
    """List quotas and SCRAM users; in `full` mode, plan the quotas too."""
    copying = rules.acl_mode is AclMode.FULL and rules.flow.sync_topic_acls_enabled
    quotas_here, quotas_there = await read_quotas(sides.source), await read_quotas(sides.target)
    users_here, users_there = await read_scram_users(sides.source), await read_scram_users(sides.target)
    refused = [
        *_unlisted(sides.source.alias, rules.source_principal, "DESCRIBE_CONFIGS", quotas_here.refused, "quotas"),
        *_unlisted(sides.target.alias, rules.target_principal, "DESCRIBE_CONFIGS", quotas_there.refused, "quotas"),
        *_unlisted(sides.source.alias, rules.source_principal, "DESCRIBE", users_here.refused, "SCRAM users"),
        *_unlisted(sides.target.alias, rules.target_principal, "DESCRIBE", users_there.refused, "SCRAM users"),
    ]
    users = tuple(
        ScramUser(user, mechanisms, None if users_there.refused else user in users_there.users)
        for user, mechanisms in sorted(users_here.users.items())
    )
    rows = tuple(
        QuotaRow(quota.entity_words, quota.key, value, quotas_there.quotas.get(quota))
        for quota, value in quotas_here.quotas.items()
    )
    readable = quotas_here.refused is None and quotas_there.refused is None
    found = NO_QUOTAS
    if copying and readable:
        # What limits Twinlog on the source is no measure for what it may do on the target.
        own = {
            quota: value
            for quota, value in quotas_here.quotas.items()
            if quota not in memory.opposite.quotas and not quota.is_of(_user(rules.target_principal))
        }
        found = compare_quotas(own, quotas_there.quotas, memory.here.quotas)
    lost = [user.user for user in users if user.on_target is False]
    notes = [] if copying else refused
    if copying and lost:
        notes = [
            "Kafka lets nobody read a SCRAM user's credentials, so these users of the source must be given theirs on "
            f"cluster {sides.target.alias} by hand: {named(lost)}"
        ]
    notes += _slowing(found, sides.target.alias, rules.target_principal)
    return ClientPlan(found, rows, users, tuple(refused) if copying else (), tuple(notes))


def _slowing(found: QuotaDifference, alias: str, principal: str) -> list[str]:
    new = [change.quota for change in found.changes if change.after is not None]
    everybody_s = [f"{quota.key} of {quota.entity_words}" for quota in new if quota.is_for_everybody]
    if not everybody_s:
        return []
    return [
        f"these quotas of the source will hold for {principal}, which is Twinlog, on cluster {alias} too and may slow "
        f"it down; give it limits of its own there, which are left alone: {named(everybody_s)}"
    ]


def _user(principal: str) -> str:
    """As quotas name who a permission calls `User:`."""
    return principal.removeprefix("User:")


def _kept_back(wanted: WantedAcls, alias: str, principal: str) -> tuple[str, ...]:
    if not wanted.kept_back:
        return ()
    denials = [f"{acl.permission} {acl.operation} to {acl.principal} on {acl.resource}" for acl in wanted.kept_back]
    return (
        f"these ACLs of the source would deny {principal}, which is Twinlog, its work on cluster {alias}, so they are "
        f"not copied, nor is what they deny to everybody allowed to anybody: {named(denials)}",
    )


def _refused(alias: str, principal: str, operation: str, found: Refusal) -> tuple[str, ...]:
    return tuple(sentences(alias, principal, operation, {_CLUSTER: found}, "ACLs are not compared"))


def _unlisted(alias: str, principal: str, operation: str, found: Refusal | None, what: str) -> list[str]:
    if found is None:
        return []
    return list(sentences(alias, principal, operation, {_CLUSTER: found}, f"{what} are not listed"))
