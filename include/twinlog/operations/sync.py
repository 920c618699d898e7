"""Keeps a flow's target in step with its source: topics, partitions, settings and permissions.

A sync is a plan first, from what both clusters say, and then its application; a dry run ends with the plan and has
changed nothing. A flow that has failed over is left alone: its topics on the target are no longer twins.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.flow_store import FlowStore
from twinlog.cluster.made_store import MadeStore
from twinlog.cluster.metadata import ClusterMetadata
from twinlog.cluster.raw import RawClient
from twinlog.errors import ClusterError
from twinlog.model.flow_state import State
from twinlog.model.lanes import state_topic
from twinlog.model.made import Made, MadeTopic, Remembered
from twinlog.model.sync_plan import SyncPlan
from twinlog.model.topology import Flow, Topology
from twinlog.model.twin_topics import ReportKind
from twinlog.operations.permission_planning import AclPlan, ClientPlan, plan_acls, plan_clients
from twinlog.operations.preflight import PreflightSide, preflight, target_internal_topics
from twinlog.operations.sync_applying import Applying
from twinlog.operations.sync_result import SyncResult
from twinlog.operations.sync_scope import Memory, Scope, SyncRules, scope_of_a_run, sync_rules
from twinlog.operations.twin_planning import Sides, TwinPlan, plan_twins

_NO_TWINS = frozenset({State.FAILED_OVER, State.FAILING_BACK})


class Sync:
    """The sync of one flow."""

    def __init__(self, topology: Topology, flow: Flow, source: ClusterAccess, target: ClusterAccess) -> None:
        self._flow = flow
        self._source = source
        self._target = target
        self._rules = sync_rules(topology, flow, source, target)

    def run(self, *, dry_run: bool = False, approved: bool = False) -> SyncResult:
        """Compare everything, and unless it is a dry run put it right; `approved` deletions don't wait."""
        scope = Scope(
            every_setting=self._flow.sync_topic_configs_enabled, acls=self._flow.sync_topic_acls_enabled, clients=True
        )
        with self._target.raw() as target, self._source.raw(beside=target) as source:
            sides = Sides(source, source.run(source.metadata()), target, target.run(target.metadata()))
            return target.run(_sync(sides, self._rules, lambda *_: scope, dry_run=dry_run, approved=approved))

    def prepare(self, sides: Sides, topics: frozenset[str] | None = None) -> SyncResult:
        """What a mirror run needs before it copies: new topics and partitions, and what is due of the rest.

        `topics` limits it to some of the source's.
        """
        return sides.target.run(
            _sync(sides, self._rules, lambda made, now_ms: scope_of_a_run(self._flow, made, now_ms, topics))
        )


async def _sync(
    sides: Sides,
    rules: SyncRules,
    scope: Callable[[Made, int], Scope],
    *,
    dry_run: bool = False,
    approved: bool = False,
) -> SyncResult:
    flow, target = rules.flow, sides.target
    skipped = await _not_in_step(target, sides.target_view, flow)
    if skipped is not None:
        return SyncResult(flow.name, dry_run=dry_run, skipped=skipped)
    now_ms = int(time.time() * 1000)
    memory, forgotten = await _memory(sides, flow)
    chosen = scope(memory.here, now_ms)
    if forgotten:
        chosen = replace(chosen, acls=False, clients=False)
    first = state_topic(flow.source, flow.target) not in sides.target_view.topics
    twins = await plan_twins(sides, rules, chosen, memory, now_ms)
    mirrored = [topic.name for topic in twins.sources.values()]
    acls = await plan_acls(sides, rules, memory, mirrored) if chosen.acls else AclPlan()
    clients = await plan_clients(sides, rules, memory.here) if chosen.clients else ClientPlan()
    seen = _Seen(sides, chosen, memory.here, twins, acls, clients, now_ms)
    plan = seen.plan(approved)
    warnings = await preflight(*_preflight_sides(sides, rules, twins)) if chosen.clients or first else []
    failed = [*forgotten, *twins.failed, *acls.failed, *clients.failed]
    if not dry_run:
        applying = Applying(target, sides.target_view, rules, plan)
        await applying.apply(sides.source_view.cluster_id, seen.noted(), remembers=not forgotten)
        failed += applying.failed
    return SyncResult(
        flow.name,
        plan,
        dry_run,
        failed=tuple(failed),
        notes=(*twins.notes, *acls.notes, *clients.notes),
        scram_users=clients.users,
        quotas=clients.quota_rows,
        preflight=tuple(warnings),
    )


def _preflight_sides(sides: Sides, rules: SyncRules, twins: TwinPlan) -> tuple[PreflightSide, PreflightSide]:
    mirrored = [topic.name for topic in twins.sources.values()]
    kept = [*twins.sources, *target_internal_topics(rules.flow)]
    return (
        PreflightSide(sides.source, sides.source_view, rules.source_principal, mirrored, twins.source_settings),
        PreflightSide(sides.target, sides.target_view, rules.target_principal, kept, twins.target_settings),
    )


@dataclass(frozen=True)
class _Seen:
    """All that one sync has found."""

    sides: Sides
    scope: Scope
    made: Made
    twins: TwinPlan
    acls: AclPlan
    clients: ClientPlan
    now_ms: int

    def plan(self, approved: bool) -> SyncPlan:
        deletions = self.twins.deletions.deletions
        due = tuple(one for one in deletions if approved or one.due_at_ms <= self.now_ms)
        return SyncPlan(
            create=self.twins.create,
            grow=self.twins.grow,
            settings=self.twins.settings,
            add_acls=self.acls.add,
            remove_acls=self.acls.remove,
            quotas=self.clients.quotas,
            delete=due,
            waiting=tuple(one for one in deletions if one not in due),
            reports=(*self.twins.reports, *self.twins.deletions.reports),
        )

    def noted(self) -> Remembered:
        """What is to be remembered of it: who is gone since when, who is another one now, and when all was compared."""
        return Remembered(
            {**self._back(), **self._gone(), **self._created_again()},
            configs_compared_ms=self.now_ms if self.scope.every_setting and not self.twins.failed else 0,
            acls_compared_ms=self.now_ms if self.scope.acls and self.acls.compared else 0,
        )

    def _back(self) -> dict[str, MadeTopic]:
        return {
            name: replace(known, gone_since_ms=None)
            for name, known in self.made.topics.items()
            if known.gone_since_ms is not None and known.source in self.sides.source_view.topics
        }

    def _gone(self) -> dict[str, MadeTopic]:
        known = {deletion.name: self.made.topics[deletion.name] for deletion in self.twins.deletions.deletions}
        return {name: replace(topic, gone_since_ms=topic.gone_since_ms or self.now_ms) for name, topic in known.items()}

    def _created_again(self) -> dict[str, MadeTopic]:
        """That a topic was created again is told once; from then on the new one is the twin's source."""
        again = {report.topic for report in self.twins.reports if report.kind is ReportKind.RECREATED}
        return {
            name: replace(
                self.made.topics[name],
                source_id=source.topic_id,
                source_cluster=self.sides.source_view.cluster_id,
                gone_since_ms=None,
            )
            for name, source in self.twins.sources.items()
            if source.name in again and source.topic_id is not None
        }


async def _not_in_step(target: RawClient, view: ClusterMetadata, flow: Flow) -> str | None:
    """Why the flow's topics on the target are not to be changed, or None."""
    kept = state_topic(flow.source, flow.target)
    if kept not in view.topics:
        return None
    state = (await FlowStore(target, flow.name, kept).read()).state
    return (
        f"{flow.name} is {state}, so its topics on {flow.target} are left as they are" if state in _NO_TWINS else None
    )


async def _memory(sides: Sides, flow: Flow) -> tuple[Memory, list[str]]:
    """What was made on both sides, and a sentence for each side where it can't be read."""
    here, lost = await _made(sides.target, sides.target_view, flow.source, flow.target)
    opposite, lost_too = await _made(sides.source, sides.source_view, flow.target, flow.source)
    return Memory(here, opposite), lost + lost_too


async def _made(client: RawClient, view: ClusterMetadata, source: str, target: str) -> tuple[Made, list[str]]:
    store = MadeStore(client, source, target)
    if store.topic not in view.topics:
        return Made(), []
    try:
        return await store.read(), []
    except ClusterError as failure:
        if failure.retriable:
            raise
        return Made(), [f"{failure}; so no ACL or quota is compared, and no topic is deleted"]
