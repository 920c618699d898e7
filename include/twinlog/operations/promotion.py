"""Twins that take the source's place: where names stay the same, producers write to them after a takeover.

What was kept back while they were mirrored is put back as the source had it: settings that copying needs, and the
permissions to write, on groups and on transactional ids. Both were noted on the target at every sync, so that nothing
is asked of the source now. Where names differ nobody writes to twins, and topics keep what they have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from twinlog.cluster.acl_admin import add_acls, read_acls
from twinlog.cluster.made_store import MadeStore
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import Refusal, sentences
from twinlog.cluster.topic_settings import change_settings, read_settings
from twinlog.intake.extensions import naming_of
from twinlog.model.acls import TOPIC, Acl
from twinlog.model.canary import canary_topic
from twinlog.model.made import Made, Remembered, made_topic
from twinlog.model.takeover import TakeoverPlan
from twinlog.model.topology import Flow
from twinlog.model.twin_settings import MIN_IN_SYNC, NEEDED, SettingChange, TopicSettings

_CLUSTER = "the cluster"
_HELD_MIN_IN_SYNC = "2"
"""What copying asks for where the source asks for less."""


@dataclass(frozen=True)
class Promotion:
    """What is to be changed on the target."""

    topics: tuple[str, ...] = ()
    settings: tuple[SettingChange, ...] = ()
    acls: tuple[Acl, ...] = ()
    notes: tuple[str, ...] = ()
    settings_compared_ms: int = 0
    acls_compared_ms: int = 0
    """When a sync last compared those of all topics; 0 for never."""


async def plan_promotion(target: RawClient, flow: Flow, twins: Collection[str]) -> Promotion:
    """`twins` are the mirrored topics, as the target calls them."""
    policy = naming_of(flow)
    same = sorted(twin for twin in twins if policy.source_name(twin) == twin and twin != canary_topic(flow.source))
    made = await _made(target, flow)
    view = await target.metadata(same)
    read = await read_settings(target, same, NEEDED)
    settings = tuple(
        change
        for name, now in sorted(read.topics.items())
        for change in _put_back(name, now, made.held.get(name, {}), _replicas(view.topics[name].partitions))
    )
    unread = sentences(
        target.alias,
        target.principal,
        "DESCRIBE_CONFIGS",
        {f"topic {name}": why for name, why in read.refused.items()},
        "their settings stay as they were for mirroring",
    )
    acls, note = await _missing(target, made, promoted=bool(same))
    notes = (*unread, *note, *_names_differ(flow, twins, same))
    return Promotion(tuple(same), settings, acls, notes, made.configs_compared_ms, made.acls_compared_ms)


async def promote(target: RawClient, flow: Flow, plan: TakeoverPlan) -> list[str]:
    """Do it; what was refused, each a sentence. Repeatable."""
    refused = await change_settings(target, plan.settings)
    failed = _said(target, "ALTER_CONFIGS", {f"topic {name}": why for name, why in refused.items()}, "settings stay")
    if not plan.acls:
        return failed
    # Remembered before they are added, so that what is granted now can be taken back when the topics are twins again.
    await MadeStore(target, flow.source, flow.target).change(Remembered(acls=frozenset(plan.acls)).added_to)
    not_added = await add_acls(target, plan.acls)
    first = {_CLUSTER: next(iter(not_added.values()))} if not_added else {}
    return [*failed, *_said(target, "ALTER", first, f"{len(not_added):,} ACLs were not added")]


def _put_back(name: str, now: TopicSettings, source: Mapping[str, str], replicas: int) -> Iterator[SettingChange]:
    for key in sorted(NEEDED):
        before, after = now.overrides.get(key), source.get(key)
        if key == MIN_IN_SYNC:
            if after is None and before != _HELD_MIN_IN_SYNC:
                continue
            after = None if after is None else str(min(int(after), max(replicas, 1)))
        if before != after:
            yield SettingChange(name, key, before, after)


def _replicas(partitions: Collection[object]) -> int:
    return max((len(getattr(partition, "replicas", ())) for partition in partitions), default=0)


async def _made(target: RawClient, flow: Flow) -> Made:
    topic = made_topic(flow.source, flow.target)
    if (await target.metadata([topic])).topics[topic].is_missing:
        return Made()
    return await MadeStore(target, flow.source, flow.target).read()


async def _missing(target: RawClient, made: Made, *, promoted: bool) -> tuple[tuple[Acl, ...], tuple[str, ...]]:
    wanted = frozenset(acl for acl in made.withheld if promoted or acl.resource_type != TOPIC)
    if not wanted:
        return (), ()
    there = await read_acls(target)
    if there.refused is not None:
        what = "has no authorizer" if there.no_authorizer else f"does not show its ACLs ({there.refused.error})"
        return (), (
            f"cluster {target.alias} {what}, so {len(wanted):,} permissions of the source are not granted there",
        )
    return tuple(sorted(wanted - there.acls)), ()


def _names_differ(flow: Flow, twins: Collection[str], same: Collection[str]) -> Iterator[str]:
    if len(same) < len(twins):
        yield (
            f"on {flow.target}, topics have other names than on {flow.source}: consumers read both names, the twin and "
            f"the one that producers write to on {flow.target} from now on"
        )


def _said(target: RawClient, operation: str, refused: Mapping[str, Refusal], consequence: str) -> list[str]:
    return list(sentences(target.alias, target.principal, operation, refused, consequence))
