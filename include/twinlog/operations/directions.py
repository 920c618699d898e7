"""A flow and the one that goes the other way, between the same two clusters.

That is the topology's, or, where records of the target have gone home, the way home that brought them: it goes under
the other direction's name, and whether it was there, the flow's record on the target says.

A flow that is disabled brings nothing any more, so nothing is refused or translated for its sake. What it brought
before is still there: it is told by its journal and its memory, and is not sent back. The same holds of a flow that
the topology does not list, since it was taken out or stands in another file, as far as its topics can be seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from twinlog.intake.extensions import naming_of, topics_of
from twinlog.model.flow_state import FlowRecord
from twinlog.model.topology import Flow, Topology
from twinlog.model.way_home import WayHome, way_home


def with_way_home(topology: Topology, flow: Flow, anew: frozenset[str] = frozenset()) -> tuple[Topology, WayHome]:
    """The topology with the flow's way home in place of whatever it lists in that direction, and that way home."""
    back = way_home(flow, opposite_flow(topology, flow), anew)
    return replace(topology, flows={**topology.flows, back.name: back}), back


def as_it_went(topology: Topology, flow: Flow, record: FlowRecord) -> Topology:
    """The topology with the flow's way home, if ever anything went home by it."""
    return with_way_home(topology, flow)[0] if record.came_home and not isinstance(flow, WayHome) else topology


def opposite_flow(topology: Topology, flow: Flow) -> Flow | None:
    """The flow that writes to this one's source from its target, or did before it was disabled."""
    return topology.flows.get(f"{flow.target}->{flow.source}")


def unlisted_opposite(flow: Flow) -> Flow:
    """The flow that goes the other way where nobody lists it: as good as disabled, and taken to name topics alike."""
    return replace(flow, source=flow.target, target=flow.source, enabled=False)


def other_direction(topology: Topology, flow: Flow) -> Flow | None:
    """The flow that writes to this one's source from its target, if there is one and it is enabled.

    Of a way home that is its flow, enabled or not: it may have been switched off for the time of the disaster.
    """
    other = opposite_flow(topology, flow)
    return other if other is not None and (other.enabled or isinstance(flow, WayHome)) else None


def comes_back(topology: Topology, flow: Flow) -> Callable[[str], bool]:
    """Tells of a topic of the source whether it is mirrored both ways under one name."""
    other = other_direction(topology, flow)
    if other is None:
        return lambda _: False
    here, there, takes_back = naming_of(flow), naming_of(other), topics_of(other)
    anew = flow.anew if isinstance(flow, WayHome) else frozenset()

    def answered(topic: str) -> bool:
        if topic in anew:
            # What had come from the other side is no longer there: all of it came from here.
            return False
        twin = here.target_name(topic)
        return takes_back.accepts(twin) and there.target_name(twin) == topic

    return answered


def brought_by(other: Flow) -> Callable[[str], bool]:
    """Tells of a topic of a flow's target whether the flow may have written to it.

    By the name alone: a topic that the flow's filter took once still holds what came then.
    """
    policy = naming_of(other)
    return lambda topic: policy.source_name(topic) is not None
