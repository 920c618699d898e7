"""No record comes back to the cluster it was produced on, whatever flows there are: by its topic's name, and where that
tells nothing by the journal of the way that it came.

Estates are played through, in any order of runs: what a run reads is chosen, planned and passed over by the code of a
run, and what it writes is recorded in a ledger from which the way back is read. Only the clusters are lists here.
"""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from twinlog.ledger.chain import Mark
from twinlog.ledger.columns import RawEntry, to_table
from twinlog.ledger.store import Ledger
from twinlog.model.flow import Flow
from twinlog.model.loops import conflicts
from twinlog.model.naming import policy_of
from twinlog.model.offsets import JournalEntry, PartitionPair, Segment
from twinlog.model.plan import Partitions, PlannedRange, plan
from twinlog.model.positions import NO_LEADER_EPOCH, Position
from twinlog.model.selection import TopicSelection
from twinlog.model.topology import Cluster, Topology
from twinlog.operations.directions import opposite_flow
from twinlog.operations.way_back import WayBack, shared_with, spans_to_pass
from twinlog.wire import journal

ALIASES = ("a", "b", "c", "d", "e", "f")
TOPICS = ("orders", "heartbeats", "a.orders", "b.a.orders", "orders.copy", "all.orders")
LONGEST_MARK = len("${source}-")
"""No flow here puts more around a name, once its alias is filled in."""

Record = tuple[str, int]
"""The cluster where it was produced, and its number there."""


def topology(*flows: Flow) -> Topology:
    aliases = {alias for flow in flows for alias in (flow.source, flow.target)}
    return Topology({alias: Cluster(alias, f"{alias}:1") for alias in aliases}, {flow.name: flow for flow in flows})


@st.composite
def estates(draw: st.DrawFn) -> Topology:
    """Up to six clusters, with a flow one way or both ways between many of them; what is refused is changed as the
    refusal says."""
    aliases = ALIASES[: draw(st.integers(2, 6))]
    flows: dict[str, Flow] = {}
    for pair in itertools.combinations(aliases, 2):
        ways = draw(st.sampled_from([(), (pair,), (pair[::-1],), (pair, pair[::-1])]))
        alike = draw(st.sampled_from(["identity", None]))
        for source, target in ways:
            flow = Flow(
                source,
                target,
                topics_exclude=(),
                naming=alike or draw(st.sampled_from(["prefixed", "identity", "custom"])),
                naming_format=draw(st.sampled_from(["${topic}.copy", "${source}-${topic}", "all.${topic}"])),
                replication_policy_separator=draw(st.sampled_from([".", "_"])),
            )
            flows[flow.name] = flow
    while refused := list(conflicts(list(flows.values()))):
        flows[refused[0].flow] = replace(flows[refused[0].flow], naming="prefixed")
    assume(flows)
    return topology(*flows.values())


@dataclass
class Played:
    """An estate with its logs, positions and ledgers."""

    estate: Topology
    folder: Path
    logs: dict[tuple[str, str], list[Record]] = field(default_factory=dict)
    ids: dict[tuple[str, str], UUID] = field(default_factory=dict)
    positions: dict[tuple[str, str], Position] = field(default_factory=dict)
    marks: dict[str, Mark] = field(default_factory=dict)
    written: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.selections = {flow.name: TopicSelection(self.estate, flow) for flow in self.estate.flows.values()}

    def produce(self, cluster: str, topic: str, count: int) -> None:
        log = self._log(cluster, topic)
        for _ in range(count):
            log.append((cluster, self.written[cluster]))
            self.written[cluster] += 1

    def run(self, flow: Flow) -> int:
        """One run; answers how many records it copied."""
        found = self._survey(flow)
        back = self._way_back(flow, found)
        planned = plan(found if back is None else back.bounded(found), lambda _: 0, 1)
        entries: list[JournalEntry] = []
        for task in planned.tasks:
            for each in task.ranges:
                entries += self._copy(flow, each)
        if entries:
            self._record(flow, entries)
        return sum(entry.segment.count for entry in entries)

    def topics_of(self, cluster: str) -> list[str]:
        return [topic for here, topic in self.logs if here == cluster]

    def _log(self, cluster: str, topic: str) -> list[Record]:
        self.ids.setdefault((cluster, topic), UUID(int=len(self.ids) + 1))
        return self.logs.setdefault((cluster, topic), [])

    def _survey(self, flow: Flow) -> Partitions:
        selection, policy = self.selections[flow.name], policy_of(flow)
        pairs = []
        for topic in self.topics_of(flow.source):
            if selection.left_out(topic) is None:
                twin = policy.target_name(topic)
                self._log(flow.target, twin)
                ids = self.ids[flow.source, topic], self.ids[flow.target, twin]
                pairs.append(PartitionPair(topic, ids[0], twin, ids[1], 0))
        return Partitions(
            pairs,
            [self.positions.get((flow.name, pair.source_topic)) for pair in pairs],
            [0] * len(pairs),
            [len(self.logs[flow.source, pair.source_topic]) for pair in pairs],
            [len(self.logs[flow.target, pair.target_topic]) for pair in pairs],
            [1.0] * len(pairs),
        )

    def _way_back(self, flow: Flow, found: Partitions) -> WayBack | None:
        other = opposite_flow(self.estate, flow)
        shared = None if other is None else shared_with(flow, other, found)
        if other is None or shared is None:
            return None
        return WayBack(spans_to_pass(self._ledger(other), shared), {})

    def _ledger(self, flow: Flow) -> Ledger:
        return Ledger(str(self.folder), flow.source, flow.target)

    def _copy(self, flow: Flow, planned: PlannedRange) -> Iterator[JournalEntry]:
        pair = planned.pair
        here, there = self.logs[flow.source, pair.source_topic], self.logs[flow.target, pair.target_topic]
        passed = {offset for span in planned.returned for offset in range(span.start, span.end)}
        for offset in range(planned.range.start, planned.range.end):
            if offset not in passed:
                yield JournalEntry(flow.name, "run", 0, Segment(pair, offset, len(there), 1, 0, 0, 1, 0))
                there.append(here[offset])
        self.positions[flow.name, pair.source_topic] = Position(
            planned.range.end,
            pair.source_topic_id,
            pair.target_topic_id,
            NO_LEADER_EPOCH,
            len(there),
            seen_end=planned.range.end,
        )

    def _record(self, flow: Flow, entries: list[JournalEntry]) -> None:
        before = self.marks.get(flow.name, Mark())
        first = before.offsets.get(0, 0)
        after = Mark("journal", {0: first + len(entries)})
        raw = [RawEntry(*journal.encode(entry), "journal", 0, first + at) for at, entry in enumerate(entries)]
        self._ledger(flow).append(to_table(raw), before, after)
        self.marks[flow.name] = after


@given(estates(), st.data())
@settings(max_examples=25, deadline=None)
def test_no_record_comes_back_and_no_name_grows_for_ever(estate: Topology, data: st.DataObject) -> None:
    flows = list(estate.flows.values())
    clusters = sorted(estate.clusters)
    with tempfile.TemporaryDirectory() as folder:
        played = Played(estate, Path(folder))
        steps = st.lists(
            st.one_of(
                st.sampled_from(flows), st.tuples(st.sampled_from(clusters), st.sampled_from(TOPICS), st.integers(1, 3))
            ),
            min_size=1,
            max_size=12,
        )
        for step in data.draw(steps):
            if isinstance(step, Flow):
                played.run(step)
            else:
                played.produce(*step)

        # A record goes on to a cluster that it has not been on, so it comes to rest after as many rounds.
        for _ in clusters:
            copied = [played.run(flow) for flow in flows]
        assert not any(played.run(flow) for flow in flows), f"{copied} records went on after {len(clusters)} rounds"

    for cluster in clusters:
        own = Counter(
            record
            for topic in played.topics_of(cluster)
            for record in played.logs[cluster, topic]
            if record[0] == cluster
        )
        assert own == Counter((cluster, number) for number in range(played.written[cluster]))
    most = max(map(len, TOPICS)) + (len(clusters) - 1) * LONGEST_MARK
    assert all(len(topic) <= most for _, topic in played.logs)
