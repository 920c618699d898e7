"""Going on where another mirror stopped, without copying again: what it copied is found by comparing both logs.

Both logs of a partition are read once, in step, record by record: timestamp, key, value and headers. MirrorMaker 2
batches anew and may write twice, so nothing coarser would do. What is one to one up to the target's end becomes
segments in the flow's journal, with the position behind the last of them, and from then on counts as copied by the
flow: translation, reconciliation and failover know it. What is not one to one is told, with the records that it is
about.

A partition that can't be gone on with ends it, once the others are adopted: copied from its beginning, as it would be
by a run, all that the twin has would be there twice.

MirrorMaker 2's own notes, its offset syncs and what its Connect kept, must agree with what was found. It must be
stopped: while its workers have a group, or a twin grows, nothing is adopted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from twinlog.cluster.adopted_writer import Adopted, write_adopted
from twinlog.cluster.committed_records import read_committed_records
from twinlog.cluster.groups import list_groups
from twinlog.cluster.inventory import topic_settings
from twinlog.cluster.log_offsets import OffsetAt, list_offsets
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import named
from twinlog.errors import AdoptionError
from twinlog.intake.extensions import naming_of
from twinlog.ledger.store import Ledger
from twinlog.model.description import described
from twinlog.model.naming import HEARTBEATS, offset_syncs_topic
from twinlog.model.offsets import PartitionPair, TopicPartition
from twinlog.model.plan import Partitions
from twinlog.model.topology import Flow, Topology
from twinlog.operations.directions import other_direction
from twinlog.operations.flow_gate import record_of
from twinlog.operations.lease import flow_store, held
from twinlog.operations.log_comparing import Comparing, Notes, Outcome
from twinlog.operations.recording import bring_up_to_date
from twinlog.operations.run_scope import NO_LIMITS, Ends, topics_of_run
from twinlog.operations.survey import survey
from twinlog.operations.twin_planning import Sides
from twinlog.wire.mirror_maker import OffsetSync

_POLICY = "cleanup.policy"


class Mirror(StrEnum):
    """Whose copies can be gone on with."""

    MIRROR_MAKER_2 = "mm2"
    OTHER = "other"
    """Any that copies byte for byte, in order and into the same partitions; it leaves no notes that are read."""


@dataclass(frozen=True, slots=True)
class Adoption:
    """What was adopted, partition by partition."""

    outcomes: tuple[Outcome, ...] = ()

    @property
    def adopted(self) -> list[Outcome]:
        return [one for one in self.outcomes if one.next_offset is not None]

    @property
    def refused(self) -> list[str]:
        """What can't be gone on with, and why, partition by partition."""
        return [f"{one.source}: not adopted: {one.refused}" for one in self.outcomes if one.refused]

    @property
    def sentences(self) -> list[str]:
        """What people must know of the others, partition by partition."""
        return [f"{one.source}: {note}" for one in self.outcomes for note in one.notes]


@dataclass(frozen=True)
class Adopting:
    """The adoption of one flow's topics; `tell` takes a sentence for people."""

    topology: Topology
    flow: Flow
    ends: Ends
    ledger: Ledger
    mirror: Mirror
    migration: str
    tell: Callable[[str], None] = lambda _: None

    def run(self) -> Adoption:
        """Adopt every partition that has no position of the flow's own yet."""
        with self.ends.target.raw() as target, self.ends.source.raw(beside=target) as source:
            self._demand_stopped(target)
            found = self._survey(source, target)
            notes = self._notes(source, target) if self.mirror is Mirror.MIRROR_MAKER_2 else Notes()
            comparing = [
                Comparing(source, target, found, row, notes=notes, compacts=_compacts(source, target, found.pairs[row]))
                for row, position in enumerate(found.positions)
                # Heartbeats are one topic for many mirrors, and nobody's data.
                if position is None and found.target_ends[row] and found.pairs[row].source_topic != HEARTBEATS
            ]
            return self._write(target, found, [self._compare(one) for one in comparing])

    def _compare(self, comparing: Comparing) -> tuple[Outcome, Adopted | None]:
        outcome, adopted = comparing.run()
        if adopted is not None:
            self.tell(f"{outcome.source}: {outcome.records:,} records are the source's")
        else:
            self.tell(f"{outcome.source}: not adopted: {outcome.refused or '; '.join(outcome.notes)}")
        return outcome, adopted

    def _write(self, target: RawClient, found: Partitions, compared: list[tuple[Outcome, Adopted | None]]) -> Adoption:
        adopted = [one for _, one in compared if one is not None]
        outcomes = tuple(outcome for outcome, _ in compared)
        if not adopted:
            return Adoption(outcomes)
        self._demand_still(target, found)
        self._demand_stopped(target)
        ours = described(self.topology, self.flow)
        access = self.ends.target
        with held(self.flow, access, target, run_of(self.migration), ours=ours, migration=self.migration) as lease:
            if lease.refused is not None:
                raise AdoptionError(lease.refused)
            store = flow_store(self.flow, target)
            target.run(write_adopted(target, store, self.flow, lease.holder, lease.record.lanes, adopted))
        bring_up_to_date(self.ledger, self.flow, access, target, {one.pair.target for one in adopted})
        return Adoption(outcomes)

    def _demand_stopped(self, target: RawClient) -> None:
        """Its workers, where they run by themselves, are a group of this name on the target."""
        if self.mirror is not Mirror.MIRROR_MAKER_2:
            return
        name = f"{self.flow.source}-mm2"
        group = target.run(list_groups(target)).get(name)
        if group is not None and group.active:
            raise AdoptionError(
                f"cluster {self.flow.target}: MirrorMaker 2 is running: its group {name} has members. Stop it for "
                "good, then go on with `twinlog migrate`"
            )

    def _demand_still(self, target: RawClient, found: Partitions) -> None:
        view = target.run(target.metadata({pair.target_topic for pair in found.pairs}))
        now = target.run(list_offsets(target, view, [pair.target for pair in found.pairs], OffsetAt.LOG_END)).offsets
        grown = [
            str(pair.target)
            for pair, end in zip(found.pairs, found.target_ends, strict=True)
            if now.get(pair.target) != end
        ]
        if grown:
            raise AdoptionError(
                f"cluster {self.flow.target}: {', '.join(grown[:5])} grew while the logs were compared, so somebody "
                "still writes there; stop the other mirror, then go on with `twinlog migrate`"
            )

    def _survey(self, source: RawClient, target: RawClient) -> Partitions:
        return _survey(self.topology, self.flow, source, target)

    def _notes(self, source: RawClient, target: RawClient) -> Notes:
        client = source if self.flow.offset_syncs_topic_location == "source" else target
        topic = offset_syncs_topic(self.flow)
        notes = Notes()
        for key, value, where in _records(client, topic):
            sync = OffsetSync.decode(key, value, where)
            notes.syncs.setdefault(sync.source, []).append(sync)
        mark = self.flow.replication_policy_separator
        for key, value, _ in _records(target, f"mm2-offsets{mark}{self.flow.source}{mark}internal"):
            partition, offset = _connect_offset(key, value)
            if partition is not None:
                notes.read_to[partition] = offset + 1
        return notes


def demand_own_twins(topology: Topology, flow: Flow, ends: Ends) -> None:
    """Of a flow that has never run, every twin must be empty: whoever has filled it copied what is about to be copied.

    Where a name is mirrored both ways the target's applications have.
    """
    with ends.target.raw() as target, ends.source.raw(beside=target) as source:
        if target.run(record_of(flow, target)).lanes or other_direction(topology, flow) is not None:
            return
        found = _survey(topology, flow, source, target)
    full = [
        str(pair.target)
        for pair, end in zip(found.pairs, found.target_ends, strict=True)
        if end and pair.source_topic != HEARTBEATS
    ]
    if full:
        raise AdoptionError(
            f"cluster {flow.target}: {named(full)} hold records that {flow.name} has not copied. Another mirror's are "
            "gone on with by --adopt; otherwise delete these topics, or, where they are to be added to, let `twinlog "
            "mirror` do that first"
        )


def _survey(topology: Topology, flow: Flow, source: RawClient, target: RawClient) -> Partitions:
    sides = Sides(source, source.run(source.metadata()), target, target.run(target.metadata()))
    topics = [topic.name for topic in topics_of_run(topology, flow, sides, NO_LIMITS)]
    return target.run(survey(source, target, flow, naming_of(flow), topics)).partitions


def run_of(migration: str) -> str:
    """What the ledger's rows have for a run that were adopted."""
    return f"adopt-{migration}"


def _compacts(source: RawClient, target: RawClient, pair: PartitionPair) -> bool:
    """Whether either side's cleaner may have removed records; it may where that can't be known."""
    sides = ((source, pair.source_topic), (target, pair.target_topic))
    policies = [client.run(topic_settings(client, [topic], _POLICY)).get(topic, "compact") for client, topic in sides]
    return any("compact" in policy for policy in policies)


def _records(client: RawClient, topic: str) -> Iterator[tuple[bytes, bytes, str]]:
    """Every record of a topic, which may not be there, with where it is."""
    known = client.run(client.metadata([topic])).topics[topic]
    for number in range(len(known.partitions) if known.error is None else 0):
        for record in client.run(read_committed_records(client, TopicPartition(topic, number))):
            if record.key is not None and record.value is not None:
                yield record.key, record.value, f"cluster {client.alias}: {topic}-{number}@{record.offset}"


def _connect_offset(key: bytes, value: bytes) -> tuple[TopicPartition | None, int]:
    """What Connect keeps of a source task: ["MirrorSourceConnector", {cluster, partition, topic}] and {offset}."""
    try:
        _, place = json.loads(key)
        return TopicPartition(place["topic"], int(place["partition"])), int(json.loads(value)["offset"])
    except (ValueError, TypeError, KeyError):
        # Its other connectors keep their own there.
        return None, 0
