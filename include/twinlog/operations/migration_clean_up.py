"""The end of a migration: what Twinlog keeps for itself on both clusters is removed, once applications have moved.

Removed are the flow's internal topics, the topics by which it shows that it lives, its positions, the permissions that
were copied for the mirror's own user, and what the switchover denied on the source. The migrated topics stay, with
their settings, and so do the permissions of everybody else: they are what was moved. The ledger stays too, and the
migration's report, as the evidence.

It can be done again and again. The flow's state goes last, so whoever is cut short finds that the cut-over is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from twinlog.cluster.acl_admin import read_acls, remove_acls
from twinlog.cluster.committed_records import read_committed_records
from twinlog.cluster.group_deletion import delete_groups
from twinlog.cluster.made_store import MadeStore
from twinlog.cluster.metadata import ClusterMetadata
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import ANONYMOUS, Refusal, principal_of, sentences
from twinlog.cluster.topic_admin import delete_topics
from twinlog.errors import FlowStateError
from twinlog.intake.extensions import naming_of
from twinlog.model.acls import Acl
from twinlog.model.canary import canary_topic
from twinlog.model.flow_state import State
from twinlog.model.lanes import journal_topic, position_group, state_topic
from twinlog.model.made import Made, made_topic
from twinlog.model.migration import Migration
from twinlog.model.naming import HEARTBEATS, checkpoints_topic, offset_syncs_topic
from twinlog.model.offsets import TopicPartition
from twinlog.model.topology import Flow, Topology
from twinlog.operations.directions import other_direction
from twinlog.operations.flow_gate import record_of
from twinlog.operations.migration_keeping import migration_of
from twinlog.operations.run_scope import Ends
from twinlog.operations.write_blocking import unblock
from twinlog.wire.mirror_maker import Heartbeat

PAUSE_S = 0.1
ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class CleanedUp:
    """What was removed, and what of ours is left; each in a few words, with the cluster it is on."""

    removed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()


class CleaningUp:
    """The clean-up of one flow."""

    def __init__(self, topology: Topology, flow: Flow, ends: Ends) -> None:
        self._topology = topology
        self._flow = flow
        self._ends = ends
        self._removed: list[str] = []
        self._left: list[str] = []
        self._failures: list[str] = []

    def demand_cut_over(self) -> Migration:
        """The migration, whose flow has nothing more to do."""
        migration = migration_of(self._flow, self._ends.target)
        if migration is None or not migration.is_cut_over:
            at = "is not being migrated" if migration is None else f"is at its {migration.phase}"
            raise FlowStateError(
                f"{self._flow.name} {at}: nothing is cleaned up before the cut-over is done, since what would be "
                "removed is what the cut-over needs"
            )
        with self._ends.target.raw() as target:
            state = target.run(record_of(self._flow, target)).state
        if state is not State.FAILED_OVER:
            raise FlowStateError(
                f"{self._flow.name} was cut over and is {state} again: what it needs for mirroring is not removed. Cut "
                "it over again with `twinlog switchover` first"
            )
        other = other_direction(self._topology, self._flow)
        if other is not None:
            raise FlowStateError(
                f"{other.name} tells by the journal of {self._flow.name} what came from {self._flow.source}, and would "
                f"send it back there without: disable {other.name} in the topology first"
            )
        return migration

    def run(self, *, without_source: bool = False) -> CleanedUp:
        """Remove everything that is ours; what is on a source that was switched off goes with it."""
        migration = self.demand_cut_over()
        with self._ends.target.raw() as target:
            if without_source:
                self._left.append(f"on {self._flow.source}: whatever is ours there, since it was not asked")
            else:
                self._on_the_source(target, migration)
            view = target.run(target.metadata())
            made = self._made(target, view)
            self._acls(target, made)
            self._groups(target)
            self._topics(target, view, self._on_target(target, view, made, migration))
            if not self._failures:
                self._topics(target, view, [state_topic(self._flow.source, self._flow.target)])
        self._left.append(
            f"on {self._flow.target}: the transactional ids twinlog.{self._flow.name}.*, which brokers forget by "
            "themselves after transactional.id.expiration.ms"
        )
        return CleanedUp(tuple(self._removed), tuple(self._left), tuple(self._failures))

    def _on_the_source(self, target: RawClient, migration: Migration) -> None:
        with self._ends.source.raw(beside=target) as source:
            self._denials(source, target)
            view = source.run(source.metadata())
            self._topics(source, view, self._on_source(source, view, migration))

    def _made(self, target: RawClient, view: ClusterMetadata) -> Made:
        flow = self._flow
        if made_topic(flow.source, flow.target) not in view.topics:
            return Made()
        return target.run(MadeStore(target, flow.source, flow.target).read())

    def _denials(self, source: RawClient, target: RawClient) -> None:
        """What the switchover denied on the source; which denials those are, the flow's state says."""
        count = unblock(self._flow, source, target)
        if count:
            self._removed.append(f"on {source.alias}: {count:,} denials to write, from the switchover")

    def _acls(self, target: RawClient, made: Made) -> None:
        """Those of the mirror's own users, which nobody needs any more; the others are the migration's result. Where
        nobody has a name, they are everybody's."""
        own = {principal_of(self._ends.source.settings), principal_of(self._ends.target.settings)} - {ANONYMOUS}
        there = target.run(read_acls(target)).acls
        doomed = sorted(acl for acl in made.acls if acl.principal in own and acl in there)
        refused = target.run(remove_acls(target, doomed))
        self._removed += [f"on {target.alias}: {_words(acl)}" for acl in doomed if acl not in refused]
        self._refused(target, "ALTER", {_words(acl): why for acl, why in refused.items()})

    def _groups(self, target: RawClient) -> None:
        name = position_group(self._flow.name)
        refused = target.run(delete_groups(target, [name]))
        if not refused:
            self._removed.append(f"on {target.alias}: group {name}")
        self._refused(target, "DELETE", {f"group {group}": why for group, why in refused.items()})

    def _on_target(self, target: RawClient, view: ClusterMetadata, made: Made, migration: Migration) -> Iterator[str]:
        flow, policy = self._flow, naming_of(self._flow)
        yield journal_topic(flow.source, flow.target)
        yield from self._ours(target, (checkpoints_topic(flow), *self._syncs_on("target")), migration)
        for name in (policy.target_name(HEARTBEATS), policy.target_name(canary_topic(flow.source))):
            known, found = made.topics.get(name), view.topics.get(name)
            if known is not None and found is not None and known.target_id == found.topic_id:
                yield name
        # After everything that it is known by.
        yield made_topic(flow.source, flow.target)

    def _on_source(self, source: RawClient, view: ClusterMetadata, migration: Migration) -> Iterator[str]:
        flow = self._flow
        yield from self._ours(source, self._syncs_on("source"), migration)
        shared = [other.name for other in self._topology.flows.values() if other.source == flow.source]
        if canary_topic(flow.source) in view.topics:
            if shared == [flow.name]:
                yield canary_topic(flow.source)
            else:
                self._left.append(f"on {source.alias}: topic {canary_topic(flow.source)}, which other flows use")
        if HEARTBEATS in view.topics and HEARTBEATS not in migration.found:
            if self._only_ours(source):
                yield HEARTBEATS
            else:
                self._left.append(f"on {source.alias}: topic {HEARTBEATS}, which others write to as well")

    def _syncs_on(self, side: str) -> tuple[str, ...]:
        return (offset_syncs_topic(self._flow),) if self._flow.offset_syncs_topic_location == side else ()

    def _ours(self, client: RawClient, names: tuple[str, ...], migration: Migration) -> Iterator[str]:
        for name in names:
            if name in migration.found:
                self._left.append(f"on {client.alias}: topic {name}, which was there before")
            else:
                yield name

    def _only_ours(self, source: RawClient) -> bool:
        ours = Heartbeat(self._flow.source, self._flow.target, 0).key()
        partitions = source.run(source.metadata([HEARTBEATS])).topics[HEARTBEATS].partitions
        return all(
            record.key == ours
            for number in range(len(partitions))
            for record in source.run(read_committed_records(source, TopicPartition(HEARTBEATS, number)))
        )

    def _topics(self, client: RawClient, view: ClusterMetadata, names: Iterator[str] | list[str]) -> None:
        ids: dict[str, UUID] = {}
        for name in names:
            topic = view.topics.get(name)
            if topic is not None and topic.topic_id is not None:
                ids[name] = topic.topic_id
        refused = client.run(delete_topics(client, ids))
        gone = [name for name in ids if name not in refused]
        self._await_gone(client, gone)
        self._removed += [f"on {client.alias}: topic {name}" for name in gone]
        self._refused(client, "DELETE", {f"topic {name}": why for name, why in refused.items()})

    def _await_gone(self, client: RawClient, names: list[str]) -> None:
        """Whoever looks afterwards is not to see them any more."""
        for _ in range(ATTEMPTS):
            if all(topic.is_missing for topic in client.run(client.metadata(names)).topics.values()):
                return
            client.run(client.pause(PAUSE_S))

    def _refused(self, client: RawClient, operation: str, refused: Mapping[str, Refusal]) -> None:
        principal = principal_of(
            (self._ends.target if client.alias == self._flow.target else self._ends.source).settings
        )
        self._failures += sentences(client.alias, principal, operation, refused, "it is not removed")


def _words(acl: Acl) -> str:
    return (
        f"the permission of {acl.principal} to {acl.operation} on {acl.resource_type} {acl.resource_name} "
        f"({acl.pattern})"
    )
