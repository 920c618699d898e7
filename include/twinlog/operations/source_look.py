"""What the source of a takeover still says, within a time: its groups, what of its topics is not copied, and how
topics, settings and permissions differ.

Each is asked for by itself, in a thread of its own with connections of its own, so that a source that is half dead
answers what it can, and one that hangs holds up nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinlog.cluster.access import ClusterAccess
from twinlog.errors import TwinlogError
from twinlog.intake.extensions import naming_of, topics_of
from twinlog.model.canary import canary_topic
from twinlog.model.naming import HEARTBEATS
from twinlog.model.offsets import TopicPartition
from twinlog.model.selection import TopicSelection
from twinlog.model.sync_plan import Change
from twinlog.model.topology import Flow, Topology
from twinlog.operations.asking import Asked
from twinlog.operations.lag import PartitionLag, measure_partitions
from twinlog.operations.source_groups import SourceGroups, read_source_groups
from twinlog.operations.sync import Sync

ANSWERS_WITHIN_S = 10.0


@dataclass(frozen=True)
class SourceSaid:
    """The answers, each by itself; None where none came, and `silence` then says why."""

    groups: SourceGroups | None = None
    lags: Mapping[TopicPartition, PartitionLag] | None = None
    """Of every partition of the topics that the flow takes."""
    differences: tuple[Change, ...] | None = None
    """What a sync would change on the target."""
    silence: tuple[str, ...] = ()


def carries_data(flow: Flow, topic: str) -> bool:
    """Whether a topic of the source is its owners', and no sign of life of ours."""
    return topic not in (HEARTBEATS, canary_topic(flow.source))


def mirrored_data(topology: Topology, flow: Flow, topic: str) -> bool:
    """Whether a topic of the source is mirrored and its owners'."""
    named = {other.name: naming_of(other) for other in topology.flows.values() if other.naming_policy}
    selection = TopicSelection(topology, flow, named, topics_of(flow))
    return carries_data(flow, topic) and selection.left_out(topic) is None


class SourceLook:
    """Asking begins when this is made."""

    def __init__(
        self,
        topology: Topology,
        flow: Flow,
        source: ClusterAccess,
        target: ClusterAccess,
        timeout_s: float,
        *,
        compare: bool = True,
    ) -> None:
        """`compare` says whether differences are asked for."""
        self._topology = topology
        self._flow = flow
        self._source = source
        self._target = target
        self._timeout_s = timeout_s
        self._groups = Asked(self._ask_groups, timeout_s, f"cluster {flow.source}")
        self._lags = Asked(self._ask_lags, timeout_s, f"cluster {flow.source}")
        named = f"the comparison of {flow.source} and {flow.target}"
        self._differences = Asked(self._ask_differences, timeout_s, named) if compare else None

    def said(self) -> SourceSaid:
        """Once, when there is nothing else to do but wait."""
        groups, lags = self._groups.answer(), self._lags.answer()
        different = () if self._differences is None else self._differences.answer()
        failures = [str(answer) for answer in (groups, lags) if isinstance(answer, TwinlogError)]
        return SourceSaid(
            None if isinstance(groups, TwinlogError) else groups,
            None if isinstance(lags, TwinlogError) else lags,
            None if isinstance(different, TwinlogError) else different,
            tuple(dict.fromkeys(failures)),
        )

    def _ask_groups(self) -> SourceGroups:
        with self._source.raw(self._timeout_s) as source:
            return source.run(read_source_groups(source, self._flow))

    def _ask_differences(self) -> tuple[Change, ...]:
        return tuple(Sync(self._topology, self._flow, self._source, self._target).compare().changes)

    def _ask_lags(self) -> dict[TopicPartition, PartitionLag]:
        with self._target.raw() as target, self._source.raw(self._timeout_s, beside=target) as source:
            topics = [
                topic
                for topic in source.run(source.metadata()).topics.values()
                if mirrored_data(self._topology, self._flow, topic.name)
            ]
            partitions = [
                TopicPartition(topic.name, number) for topic in topics for number in range(len(topic.partitions))
            ]
            waiting = source.run(
                measure_partitions(source, target, self._flow, naming_of(self._flow), partitions, stable=False)
            )
            return dict.fromkeys(partitions, PartitionLag()) | waiting
