"""Carries out a sync plan, and remembers what was made.

Order matters: a permission is remembered before it is added, so that one that was added can always be revoked; a topic
is remembered after it was created, so that one that somebody else created can never be deleted. A step that is refused
is told and the rest goes on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from twinlog.cluster.acl_admin import add_acls, remove_acls
from twinlog.cluster.client_limits import change_quotas
from twinlog.cluster.made_store import MadeStore
from twinlog.cluster.metadata import ClusterMetadata
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import Refusal, sentences
from twinlog.cluster.topic_admin import TopicToCreate, create_topics, delete_topics, grow_topics
from twinlog.cluster.topic_settings import change_settings
from twinlog.cluster.visibility import WITHIN_S, acls_visible, setting_visible, topics_visible
from twinlog.errors import ClusterError
from twinlog.model.acls import Acl
from twinlog.model.made import MadeTopic, Remembered
from twinlog.model.quotas import Quota
from twinlog.model.sync_plan import SyncPlan
from twinlog.operations.internal_topics import create_made_topic
from twinlog.operations.sync_scope import SyncRules

T = TypeVar("T")
_CLUSTER = "the cluster"


class Applying:
    """One plan on its way; `failed` collects a sentence for everything that was refused."""

    def __init__(self, target: RawClient, view: ClusterMetadata, rules: SyncRules, plan: SyncPlan) -> None:
        self.failed: list[str] = []
        self._target = target
        self._view = view
        self._rules = rules
        self._plan = plan
        self._store = MadeStore(target, rules.flow.source, rules.flow.target)

    async def apply(self, source_cluster: str | None, noted: Remembered, *, remembers: bool) -> None:
        """Make every change; `noted` is what is to be remembered beside what is made.

        Where nothing can be remembered, nothing is made that might have to be taken back.
        """
        remembers = remembers and await self._can_remember()
        topics = {**noted.topics, **await self._topics(source_cluster)}
        no_acls = await self._acls() if remembers else frozenset[Acl]()
        no_quotas = await self._quotas() if remembers else frozenset[Quota]()
        topics |= await self._deletions()
        if remembers:
            no_acls, no_quotas = no_acls | noted.no_acls, no_quotas | noted.no_quotas
            await self._remember(replace(noted, topics=topics, no_acls=no_acls, no_quotas=no_quotas))

    async def _can_remember(self) -> bool:
        refused = await create_made_topic(self._target, self._rules.flow, self._view)
        self._say("CREATE", _topic_names(refused), "no ACL or quota is changed, and no topic will ever be deleted")
        return not refused

    async def _remember(self, what: Remembered) -> bool:
        if what == Remembered():
            return True
        try:
            await self._store.change(what.added_to)
        except ClusterError as failure:
            self.failed.append(f"{failure}; so what is made can't be remembered in topic {self._store.topic}")
            return False
        return True

    async def _topics(self, source_cluster: str | None) -> dict[str, MadeTopic | None]:
        plan = self._plan
        created = await create_topics(
            self._target,
            [
                TopicToCreate(twin.name, twin.partitions, twin.replication_factor, twin.wanted.values)
                for twin in plan.create
            ],
        )
        self._say("CREATE", _topic_names(created.refused), "not created")
        grown = await grow_topics(self._target, {growth.name: growth.after for growth in plan.grow})
        self._say("ALTER", _topic_names(grown), "partitions were not added")
        changed = await change_settings(self._target, plan.settings)
        self._say("ALTER_CONFIGS", _topic_names(changed), "settings were not changed")
        await self._await_topics(created.refused.keys(), grown.keys(), changed.keys())
        sources = {twin.name: twin.source for twin in plan.create}
        return {
            name: MadeTopic(topic_id, sources[name].name, sources[name].topic_id or UUID(int=0), source_cluster)
            for name, topic_id in created.ids.items()
        }

    async def _await_topics(
        self, not_created: Collection[str], not_grown: Collection[str], not_changed: Collection[str]
    ) -> None:
        plan = self._plan
        partitions = {twin.name: twin.partitions for twin in plan.create if twin.name not in not_created}
        partitions |= {growth.name: growth.after for growth in plan.grow if growth.name not in not_grown}
        if not await topics_visible(self._target, partitions):
            self._unseen("topics and partitions")
        changed = [change for change in plan.settings if change.topic not in not_changed]
        if changed and not await setting_visible(self._target, changed[-1]):
            self._unseen("settings")

    async def _acls(self) -> frozenset[Acl]:
        """Change the ACLs; those that are not there, or no longer, are the answer."""
        plan = self._plan
        if not plan.add_acls and not plan.remove_acls:
            return frozenset()
        if not await self._remember(Remembered(acls=frozenset(plan.add_acls))):
            return frozenset()
        not_added = await add_acls(self._target, plan.add_acls)
        self._say("ALTER", _first(not_added), f"{len(not_added):,} ACLs were not added")
        not_removed = await remove_acls(self._target, plan.remove_acls)
        self._say("ALTER", _first(not_removed), f"{len(not_removed):,} ACLs were not removed")
        added, removed = (
            frozenset(plan.add_acls) - not_added.keys(),
            frozenset(plan.remove_acls) - not_removed.keys(),
        )
        if (added or removed) and not await acls_visible(self._target, added, removed):
            self._unseen("ACLs")
        return removed | not_added.keys()

    async def _quotas(self) -> frozenset[Quota]:
        """Change the quotas; those that are not there, or no longer, are the answer."""
        plan = self._plan
        if not plan.quotas:
            return frozenset()
        new = frozenset(change.quota for change in plan.quotas if change.before is None)
        if not await self._remember(Remembered(quotas=new)):
            return frozenset()
        refused = await change_quotas(self._target, plan.quotas)
        self._say("ALTER_CONFIGS", _first(refused), f"{len(refused):,} quotas were not changed")
        gone = frozenset(change.quota for change in plan.quotas if change.after is None) - refused.keys()
        return gone | (new & refused.keys())

    async def _deletions(self) -> dict[str, MadeTopic | None]:
        ids = {deletion.name: deletion.topic_id for deletion in self._plan.delete}
        refused = await delete_topics(self._target, ids)
        self._say("DELETE", _topic_names(refused), "not deleted")
        return dict.fromkeys((name for name in ids if name not in refused), None)

    def _unseen(self, what: str) -> None:
        self.failed.append(
            f"cluster {self._target.alias} took the changes of {what} and does not show them after {WITHIN_S:.0f} s; "
            "do its brokers follow the controller?"
        )

    def _say(self, operation: str, refused: Mapping[str, Refusal], consequence: str) -> None:
        principal = self._rules.target_principal
        self.failed += sentences(self._target.alias, principal, operation, refused, consequence)


def _topic_names(refused: Mapping[str, Refusal]) -> dict[str, Refusal]:
    return {f"topic {name}": found for name, found in refused.items()}


def _first(refused: Mapping[T, Refusal]) -> dict[str, Refusal]:
    """A cluster refuses such changes for one reason only, that they are not ours to make: the first says it all."""
    return {_CLUSTER: next(iter(refused.values()))} if refused else {}
