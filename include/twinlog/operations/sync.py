"""Keeps a flow's target in step with its source: topics, partitions, settings and permissions.

A sync is a plan first, from what both clusters say, and then its application; a dry run ends with the plan and has
changed nothing. A flow that has failed over is left alone: its topics on the target are no longer twins. Where what
Twinlog has made can't be read, on either side, nothing is done that only it can tell to be right.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from twinlog.cluster.access import ClusterAccess
from twinlog.model.lanes import state_topic
from twinlog.model.made import FoundTopic, Made, MadeTopic, Remembered
from twinlog.model.sync_plan import SyncPlan
from twinlog.model.topology import Flow, Topology
from twinlog.model.twin_settings import NEEDED
from twinlog.model.twin_topics import ReportKind
from twinlog.operations.hidden_topics import hidden_topics, named_by
from twinlog.operations.own_topics import (
    own_topics_on_source,
    own_topics_on_target,
    planned_on_source,
    planned_on_target,
)
from twinlog.operations.permission_planning import AclPlan, ClientPlan, plan_acls, plan_clients
from twinlog.operations.preflight import PreflightSide, preflight
from twinlog.operations.sync_applying import Applying
from twinlog.operations.sync_memory import not_in_step, read_memory
from twinlog.operations.sync_result import SyncResult
from twinlog.operations.sync_scope import Memory, Scope, SyncRules, keeps_to_twins, scope_of_a_run, sync_rules
from twinlog.operations.twin_planning import Sides, TwinPlan, facts, plan_twins, planned_twin


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

    def compare(self) -> SyncResult:
        """How the topics, their settings and their permissions differ, whatever of them the flow keeps in step; nothing
        is changed."""
        scope = Scope(every_setting=True, acls=True, clients=False)
        with self._target.raw() as target, self._source.raw(beside=target) as source:
            sides = Sides(source, source.run(source.metadata()), target, target.run(target.metadata()))
            return target.run(_sync(sides, self._rules, lambda *_: scope, dry_run=True))

    def prepare(self, sides: Sides, topics: frozenset[str] | None = None) -> SyncResult:
        """What a mirror run needs before it copies: new topics and partitions, and what is due of the rest.

        `topics` limits it to some of the source's.
        """
        new = topics is not None or not keeps_to_twins(self._flow, sides.target_view)
        return sides.target.run(
            _sync(
                sides,
                self._rules,
                lambda made, now_ms: replace(scope_of_a_run(self._flow, made, now_ms, topics), new=new),
            )
        )


async def _sync(
    sides: Sides,
    rules: SyncRules,
    scope: Callable[[Made, int], Scope],
    *,
    dry_run: bool = False,
    approved: bool = False,
) -> SyncResult:
    flow = rules.flow
    skipped = await not_in_step(sides, rules, dry_run=dry_run)
    if skipped is not None:
        return skipped
    now_ms = int(time.time() * 1000)
    memory = await read_memory(sides, rules)
    asked = scope(memory.here, now_ms)
    chosen = replace(asked, acls=False, clients=False) if memory.lost else asked
    first = state_topic(flow.source, flow.target) not in sides.target_view.topics
    twins = await plan_twins(sides, rules, chosen, memory, now_ms)
    mirrored = [topic.name for topic in twins.sources.values()]
    acls = await plan_acls(sides, rules, memory, mirrored) if chosen.acls else AclPlan()
    clients = await plan_clients(sides, rules, memory) if chosen.clients else ClientPlan()
    seen = _Seen(sides, chosen, memory, twins, acls, clients, now_ms)
    plan = seen.plan(approved)
    withheld = () if approved else seen.withheld
    warnings = await preflight(*_preflight_sides(sides, rules, twins)) if asked.clients or first else []
    hidden = await _hidden(sides, rules, memory.here) if asked.clients else []
    failed = [*memory.lost, *hidden, *twins.failed, *acls.failed, *clients.failed, *withheld]
    if not dry_run:
        applying = Applying(sides.target, sides.target_view, rules, plan)
        noted = seen.noted(same_source=not withheld)
        await applying.apply(sides.source_view.cluster_id, noted, remembers=memory.lost_here is None)
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


async def _hidden(sides: Sides, rules: SyncRules, made: Made) -> list[str]:
    """What a whole sync says of the flow's topics that may not be seen; a run says it of each itself."""
    known = {topic.source for topic in made.topics.values() if rules.takes(topic.source)}
    names = named_by(rules.flow, rules.selection) | known
    hidden = await hidden_topics(sides.source, sides.source_view, names)
    return [one.said(sides.source) for one in hidden]


def _preflight_sides(sides: Sides, rules: SyncRules, twins: TwinPlan) -> tuple[PreflightSide, PreflightSide]:
    mirrored = [topic.name for topic in twins.sources.values()]
    default = twins.default_min_in_sync
    new = [planned_twin(twin, default) for twin in twins.create]
    return (
        PreflightSide(
            sides.source,
            sides.source_view,
            rules.source_principal,
            [*mirrored, *own_topics_on_source(rules.flow)],
            twins.source_settings,
            planned_on_source(rules.flow, sides.source_view),
        ),
        PreflightSide(
            sides.target,
            sides.target_view,
            rules.target_principal,
            [*twins.sources, *own_topics_on_target(rules.flow)],
            twins.target_settings,
            [*new, *planned_on_target(rules.flow, sides.target_view, default)],
        ),
    )


@dataclass(frozen=True)
class _Seen:
    """All that one sync has found."""

    sides: Sides
    scope: Scope
    memory: Memory
    twins: TwinPlan
    acls: AclPlan
    clients: ClientPlan
    now_ms: int

    def plan(self, approved: bool) -> SyncPlan:
        deletions = self.twins.deletions.deletions
        due = tuple(one for one in deletions if approved or one.due_at_ms <= self.now_ms)
        takes_back = approved or not self._replaced
        return SyncPlan(
            create=self.twins.create,
            grow=self.twins.grow,
            settings=self.twins.settings,
            add_acls=self.acls.add,
            remove_acls=self.acls.remove if takes_back else (),
            quotas=tuple(one for one in self.clients.quotas.changes if takes_back or one.after is not None),
            delete=due,
            waiting=tuple(one for one in deletions if one not in due),
            reports=(*self.twins.reports, *self.twins.deletions.reports),
        )

    @property
    def withheld(self) -> tuple[str, ...]:
        """That permissions stay, in a sentence, which the cluster that they were copied from had and this one has not.

        A source that was built anew under the same name has lost its permissions; its users have not.
        """
        acls = len(self.acls.remove)
        quotas = sum(1 for change in self.clients.quotas.changes if change.after is None)
        if not self._replaced or not (acls or quotas):
            return ()
        view, here = self.sides.source_view, self.memory.here
        return (
            f"cluster {self.sides.source.alias} is another one than the permissions on {self.sides.target.alias} were "
            f"copied from (its id is {view.cluster_id}, and was {here.source_cluster}), so {acls:,} ACLs and "
            f"{quotas:,} quotas that it does not have stay there; `twinlog sync --yes` removes them",
        )

    @property
    def _replaced(self) -> bool:
        known = self.memory.here.source_cluster
        return known is not None and known != self.sides.source_view.cluster_id

    def noted(self, *, same_source: bool) -> Remembered:
        """What is to be remembered of it: who is gone since when, who is another one now, and when all was compared.

        And what is no longer Twinlog's, since it is neither on the target any more nor wanted there.
        """
        compared = self.scope.acls and self.acls.compared
        all_settings = self.scope.every_setting and not self.twins.failed and not self.memory.lost
        return Remembered(
            {**self._back(), **self._gone(), **self._created_again()},
            no_acls=self.acls.forget,
            no_quotas=self.clients.quotas.forget,
            configs_compared_ms=self.now_ms if all_settings else 0,
            acls_compared_ms=self.now_ms if compared else 0,
            source_cluster=self.sides.source_view.cluster_id if compared and same_source else None,
            held=self._held(),
            withheld=self.acls.withheld,
            found=self._found(),
        )

    def _held(self) -> dict[str, dict[str, str]]:
        """What a takeover puts back, of the topics whose settings were read."""
        return {
            name: {key: value for key, value in read.overrides.items() if key in NEEDED}
            for name, source in self.twins.sources.items()
            if (read := self.twins.source_settings.get(source.name)) is not None
        }

    def _found(self) -> dict[str, FoundTopic]:
        """The twins that others created, of those that were compared and those whose source is another one now."""
        here = self.memory.here
        told = self._recreated & here.found.keys()
        return {
            name: FoundTopic(twin.topic_id, source.topic_id)
            for name in sorted(self.twins.compared | told)
            if (source := self.twins.sources[name]).topic_id is not None
            and (twin := self.sides.target_view.topics[name]).topic_id is not None
            and not self.memory.made(name, facts(twin))
        }

    def _back(self) -> dict[str, MadeTopic]:
        return {
            name: replace(known, gone_since_ms=None)
            for name, known in self.memory.here.topics.items()
            if known.gone_since_ms is not None and known.source in self.sides.source_view.topics
        }

    def _gone(self) -> dict[str, MadeTopic]:
        known = {deletion.name: self.memory.here.topics[deletion.name] for deletion in self.twins.deletions.deletions}
        return {name: replace(topic, gone_since_ms=topic.gone_since_ms or self.now_ms) for name, topic in known.items()}

    def _created_again(self) -> dict[str, MadeTopic]:
        """That a topic was created again is told once; from then on the new one is the twin's source."""
        made = self.memory.here.topics
        return {
            name: replace(
                made[name],
                source_id=source_id,
                source_cluster=self.sides.source_view.cluster_id,
                gone_since_ms=None,
            )
            for name in self._recreated & made.keys()
            if (source_id := self.twins.sources[name].topic_id) is not None
        }

    @property
    def _recreated(self) -> set[str]:
        """The twins whose source was created again."""
        again = {report.topic for report in self.twins.reports if report.kind is ReportKind.RECREATED}
        return {name for name, source in self.twins.sources.items() if source.name in again}
