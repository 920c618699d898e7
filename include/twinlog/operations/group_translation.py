"""The translation of groups' positions: by the flow's own ledger, and for names that are mirrored both ways by both.

Where a name is mirrored both ways the two logs interleave differently, so that one offset can't mean the same set of
records; those topics are translated to the first record that the group has not read, and what it reads again is
counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa  # noqa: TID253 - no DAG imports an operation at its top

from twinlog.cluster.access import ClusterAccess
from twinlog.ledger.schema import IN_MEMORY
from twinlog.ledger.store import Ledger
from twinlog.ledger.translate import Translator
from twinlog.ledger.two_way import RecordedWay, TwoWayTranslator
from twinlog.model.lanes import journal_topic
from twinlog.model.topology import Flow, Topology
from twinlog.model.way_home import WayHome
from twinlog.operations.directions import as_it_went, comes_back, other_direction
from twinlog.operations.flow_gate import record_of
from twinlog.operations.translate import translator, translator_as_it_stands


@dataclass(frozen=True)
class GroupTranslation:
    """A flow's translator, and the one for its topics that come back under the same name, if any do."""

    onward: Translator
    both: TwoWayTranslator | None = None
    comes_back: Callable[[str], bool] = lambda _: False
    """Whether a topic of the source is mirrored both ways under one name."""

    def table(self, asked: pa.Table, *, both_ways: bool) -> pa.Table:
        """As Translator.table does, of topics that are all of the one kind or all of the other."""
        if both_ways and self.both is not None:
            return self.both.table(asked)
        answers = self.onward.table(asked)
        return answers.append_column("read_again", pa.repeat(pa.scalar(0, pa.int64()), answers.num_rows))


def group_translation(
    topology: Topology, flow: Flow, source: ClusterAccess | None, target: ClusterAccess, ledger: Ledger
) -> GroupTranslation:
    """Read now; without the source, topics that are mirrored both ways have no translator."""
    listed, topology = topology, _as_it_went(topology, flow, target)
    other = other_direction(topology, flow)
    if other is None:
        return GroupTranslation(translator(flow, target, ledger))
    # The way back first: read later, it could have passed over copies that the flow's own translator does not know.
    back = None if source is None else _back(topology, other, source)
    onward = translator(flow, target, ledger)
    ended = has_ended(listed, flow, other, onward)
    both = None if back is None else TwoWayTranslator(onward, back, back_has_ended=ended)
    return GroupTranslation(onward, both, comes_back(topology, flow))


def recorded_group_translation(
    topology: Topology, flow: Flow, target: ClusterAccess, ledger: Ledger, *, settled: bool = True
) -> GroupTranslation:
    """Read now without asking the source for anything: the way back of names that are mirrored both ways is known by
    its ledger. Not `settled`: what a transaction holds back that is open on the target is not waited for."""
    read = translator if settled else translator_as_it_stands
    listed, topology = topology, _as_it_went(topology, flow, target)
    other = other_direction(topology, flow)
    if other is None:
        return GroupTranslation(read(flow, target, ledger))
    # The way back first, as above.
    way = RecordedWay(Ledger(topology.ledger_for(other), other.source, other.target))
    onward = read(flow, target, ledger)
    ended = has_ended(listed, flow, other, onward)
    both = TwoWayTranslator(onward, way.opposite(onward), back_has_ended=ended)
    return GroupTranslation(onward, both, comes_back(topology, flow))


def has_ended(listed: Topology, flow: Flow, other: Flow, onward: Translator) -> bool:
    """Whether the way back is that of a failback, which is over, and no listed flow goes on with its topics."""
    returns = comes_back(listed, flow)
    return isinstance(other, WayHome) and not any(returns(pair.source_topic) for pair in onward.pairs)


def _as_it_went(topology: Topology, flow: Flow, target: ClusterAccess) -> Topology:
    """The topology with the flow's way home, if records of the target have gone home by it."""
    with target.raw() as client:
        return as_it_went(topology, flow, client.run(record_of(flow, client)))


def _back(topology: Topology, other: Flow, source: ClusterAccess) -> Translator:
    """The other direction's translator; one that knows nothing where that flow has never run."""
    journal = journal_topic(other.source, other.target)
    with source.raw() as client:
        known = client.run(client.metadata([journal])).topics[journal]
    if known.is_missing:
        return Translator(IN_MEMORY.empty_table(), [])
    return translator(other, source, Ledger(topology.ledger_for(other), other.source, other.target))
