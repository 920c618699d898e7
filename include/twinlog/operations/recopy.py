"""Topics copied again into fresh ones, which then take the places of their twins.

    fresh     a small flow of its own copies the topics from the source into internal topics of the target, exactly
              once and on Spark as any flow does, while the twins are still there and are mirrored to
    prove     source and fresh copy are compared; nothing is swapped that is not equal
    swap      under the flow's own lease: the fresh copy catches up; groups are noted; the twin is deleted by the id
              that was approved, made anew as any run makes it, and filled from the fresh copy, beside it on the target
    clear     the fresh topics, and all that the small flow kept, are removed

Kafka can't rename a topic, so the place is taken by filling: the short way, from batches that are known to be equal,
and not across the distance. The flow's own lanes do it, with rows in its journal and positions, so whoever dies in
between leaves a twin that the next call fills on, and that an ordinary run would fill on from the source.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from twinlog.cluster.raw import RawClient
from twinlog.cluster.refilling import Filling, Refilling
from twinlog.cluster.refusals import demand
from twinlog.cluster.topic_admin import delete_topics
from twinlog.cluster.topic_settings import change_settings, read_settings
from twinlog.cluster.visibility import topics_gone
from twinlog.errors import RepairError
from twinlog.intake.extensions import naming_of
from twinlog.ledger.repairs import Repairs, TwinsBefore
from twinlog.ledger.store import Ledger
from twinlog.model.description import described
from twinlog.model.topology import Flow, Topology
from twinlog.model.twin_settings import SettingChange
from twinlog.operations.fresh_copy import Executors, FreshCopy
from twinlog.operations.lease import Held, flow_store, held
from twinlog.operations.mirror import Mirror, new_run_id
from twinlog.operations.recopy_groups import groups_on, noted, put_back
from twinlog.operations.repair_plan import RepairPlan
from twinlog.operations.run_scope import Ends
from twinlog.operations.survey import survey
from twinlog.operations.sync import Sync
from twinlog.operations.twin_planning import Sides

LEASE_WITHIN_S = 900.0
LOOK_EVERY_S = 1.0


@dataclass(frozen=True)
class Recopying:
    """The topics of one plan that are copied again."""

    topology: Topology
    flow: Flow
    ends: Ends
    ledger: Ledger
    ends_of: Callable[[Topology, Flow], Ends]
    """How another flow between the same clusters reaches them."""
    plan: RepairPlan
    say: Callable[[str], None]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(one.topic for one in self.plan.recopy)

    def run(self, execute: Executors) -> Iterator[str]:
        """All of it; answers, in sentences, what could not be put back as it was."""
        fresh = self.fresh_copy
        fresh.begin()
        self.say(f"{self.flow.name}: copying {', '.join(sorted(self.names))} again")
        fresh.catch_up(execute)
        fresh.demand_equal(execute, whole=True)
        yield from self._swap(fresh, execute)
        yield from self.clear()

    def clear(self) -> Iterator[str]:
        """Remove the fresh copy, and all that made it; answers what could not be removed."""
        yield from self.fresh_copy.clear()

    @property
    def fresh_copy(self) -> FreshCopy:
        return FreshCopy(self.topology, self.flow, self.ends_of, self.plan.id, self.names)

    def _swap(self, fresh: FreshCopy, execute: Executors) -> Iterator[str]:
        with (
            self.ends.target.raw() as target,
            self.ends.source.raw(beside=target) as source,
            self._lease(target) as lease,
        ):
            self.say(f"{self.flow.name}: the fresh copy catches up, and takes the twins' places")
            fresh.catch_up(execute)
            fresh.demand_equal(execute, whole=False)
            self._note_before(target)
            self._delete(target)
            sides = Sides(source, source.run(source.metadata()), target, target.run(target.metadata()))
            made = Sync(self.topology, self.flow, self.ends.source, self.ends.target).prepare(sides, self.names)
            if made.failed:
                raise RepairError("; ".join(made.failed))
            before = Repairs(self.ledger).before(self.plan.id)
            self._put_settings_back(target, before.settings)
            since = self.ledger.mark().node.total
            store = flow_store(self.flow, target)
            fillings = list(self._fillings(fresh, source, target))
            target.run(Refilling(target, store, self.flow, lease.holder, lease.record.lanes).fill(fillings))
            # As every run ends: the ledger has it, and MirrorMaker 2's tools find its offsets.
            recorded = Mirror(self.topology, self.flow, self.ends, self.ledger).record(lease.holder.run, since)
            yield from recorded.notes
            yield from put_back(self.flow, self.ends.target, self.ledger, target, before.groups)

    @contextmanager
    def _lease(self, target: RawClient) -> Iterator[Held]:
        """The flow's lease, waited for while a run of the flow has it."""
        ours, run = described(self.topology, self.flow), new_run_id()
        deadline = time.monotonic() + LEASE_WITHIN_S
        while True:
            with held(self.flow, self.ends.target, target, run, ours=ours) as lease:
                if lease.refused is None:
                    yield lease
                    return
            if time.monotonic() > deadline or not lease.record.lease:
                raise RepairError(f"{lease.refused}; no twin was touched, run again")
            target.run(target.pause(LOOK_EVERY_S))

    def _note_before(self, target: RawClient) -> None:
        """Where the groups are and what is set, of the twins that are still those that were approved."""
        kept, repairs = self._standing(target), Repairs(self.ledger)
        if not kept:
            return
        found = groups_on(self.flow, target, frozenset(kept))
        busy = sorted({one.group for one in found if one.active})
        if busy:
            raise RepairError(
                f"{', '.join(busy)} have members on {', '.join(sorted(kept))}, where their offsets are going to mean "
                "other records: stop them, then run again"
            )
        moved = {one.twin: one.moved for one in self.plan.recopy}
        rows = noted(self.flow, self.ends.target, self.ledger, found, moved)
        read = target.run(read_settings(target, list(kept)))
        by_topic = {f"topic {name}": why for name, why in read.refused.items()}
        demand(target.alias, target.principal, "DESCRIBE_CONFIGS", by_topic, "no twin was touched")
        # Of twins that an earlier try has deleted, what it has noted.
        earlier = repairs.before(self.plan.id)
        groups = [row for row in earlier.groups if row["twin"] not in kept]
        settings = {name: dict(found.overrides) for name, found in read.topics.items()}
        repairs.keep_before(self.plan.id, TwinsBefore([*groups, *rows], {**earlier.settings, **settings}))

    def _put_settings_back(self, target: RawClient, wanted: Mapping[str, Mapping[str, str]]) -> None:
        """What was set on a twin, by whomever: the flow's own next sync judges it, as it did before."""
        now = target.run(read_settings(target, list(wanted))).topics if wanted else {}
        changes = [
            SettingChange(name, key, None, value)
            for name, overrides in wanted.items()
            if name in now
            for key, value in overrides.items()
            if now[name].overrides.get(key) != value
        ]
        refused = target.run(change_settings(target, changes))
        by_topic = {f"topic {name}": why for name, why in refused.items()}
        demand(target.alias, target.principal, "ALTER_CONFIGS", by_topic, "the new twin is not filled yet; run again")

    def _standing(self, target: RawClient) -> dict[str, UUID]:
        """The twins that are to be deleted and still are there."""
        wanted = {one.twin: UUID(one.twin_id) for one in self.plan.recopy}
        view = target.run(target.metadata(list(wanted)))
        return {name: topic_id for name, topic_id in wanted.items() if view.topics[name].topic_id == topic_id}

    def _delete(self, target: RawClient) -> None:
        doomed = self._standing(target)
        refused = target.run(delete_topics(target, doomed))
        by_topic = {f"topic {name}": why for name, why in refused.items()}
        demand(target.alias, target.principal, "DELETE", by_topic, "the twin stays as it is")
        if not target.run(topics_gone(target, doomed)):
            raise RepairError(
                f"cluster {target.alias}: {', '.join(doomed)} can still be seen after a minute; run again"
            )

    def _fillings(self, fresh: FreshCopy, source: RawClient, target: RawClient) -> Iterator[Filling]:
        found = target.run(survey(source, target, self.flow, naming_of(self.flow), sorted(self.names))).partitions
        positions = fresh.positions(target)
        rows = fresh.rows(target)
        for pair in found.pairs:
            end = positions.get(pair.source)
            if end is None:
                # Made since; the flow's next run begins it.
                continue
            if end.source_topic_id != pair.source_topic_id:
                raise RepairError(
                    f"{pair.source} was deleted and created again on {self.flow.source} while it was copied again; "
                    "abandon this repair, and let the flow run"
                )
            segments = rows.get((str(pair.source_topic_id), pair.partition), [])
            yield Filling(pair, fresh.place_of(pair.source), segments, end)
