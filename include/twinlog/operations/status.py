"""What can be said of each flow right now: are both its clusters there, what does it mirror, and how far behind is it.

All clusters are asked at once, each once however many flows share it, and the answer comes within the time-out. A
cluster that cannot be reached is part of the result and hides nothing of the others.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.flow_store import FlowStore
from twinlog.cluster.metadata import ClusterMetadata, Topic
from twinlog.cluster.secrets import mask
from twinlog.errors import ClusterUnreachableError, TwinlogError
from twinlog.intake.extensions import naming_of, topics_of
from twinlog.ledger.store import Ledger
from twinlog.model.lanes import state_topic
from twinlog.model.selection import TopicSelection
from twinlog.model.topology import Flow, Topology
from twinlog.operations.lag import TopicLag, measure

DEFAULT_TIMEOUT_S = 15.0
_GRACE_S = 1.0
"""For the answer of a client that ends exactly at its time-out."""

AccessFor = Callable[[Flow, str], ClusterAccess]
"""How a flow reaches its `source` or `target`; `twinlog.cluster.access.flow_access` with the topology filled in."""


@dataclass(frozen=True)
class SideStatus:
    """One end of a flow. Topics and partitions leave out Kafka's internal ones; None where it was not reached."""

    cluster: str
    reachable: bool
    brokers: int | None = None
    topics: int | None = None
    partitions: int | None = None
    error: str | None = None
    exit_code: int = 0
    retriable: bool = False


@dataclass(frozen=True)
class FlowStatus:
    """One flow; `topics` and `partitions` are those of the source that it would mirror."""

    flow: str
    state: str
    source: SideStatus
    target: SideStatus
    topics: int | None = None
    partitions: int | None = None
    lag_records: int | None = None
    lag_seconds: float | None = None
    lag: tuple[TopicLag, ...] = ()
    """The same a topic."""
    problem: str | None = None
    """Why the state or the lag could not be read although both clusters were reached."""
    last_run: str | None = None
    groups_ready: int | None = None
    groups_not_ready: int | None = None
    last_verdict: str | None = None


@dataclass(frozen=True)
class Status:
    """Every flow that was asked for, in the topology's order."""

    flows: tuple[FlowStatus, ...]

    @property
    def sides(self) -> list[SideStatus]:
        return [side for flow in self.flows for side in (flow.source, flow.target)]

    @property
    def unreachable(self) -> list[str]:
        """The clusters that did not answer or did not let us in, by alias."""
        return sorted({side.cluster for side in self.sides if not side.reachable})

    @property
    def exit_code(self) -> int:
        """0 where every cluster was reached, otherwise that of the worst error."""
        return max((side.exit_code for side in self.sides), default=0)

    def to_json(self) -> dict[str, Any]:
        rows = [asdict(flow) for flow in self.flows]
        for row in rows:
            for side in (row["source"], row["target"]):
                del side["exit_code"], side["retriable"]
        return {"flows": rows, "unreachable": self.unreachable}


@dataclass(frozen=True)
class _Reached:
    """What came of asking one cluster: its metadata or the error."""

    metadata: ClusterMetadata | None = None
    error: TwinlogError | None = None


def status(
    topology: Topology,
    accesses: AccessFor,
    flows: Sequence[str] | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> Status:
    """The status of the flows that are named, or of all that are enabled."""
    chosen = (
        [topology.flow(name) for name in flows]
        if flows is not None
        else [flow for flow in topology.flows.values() if flow.enabled]
    )
    selections = {flow.name: _selection(topology, flow) for flow in chosen}
    ways: dict[tuple[str, str], ClusterAccess | TwinlogError] = {}
    for flow in chosen:
        for side in ("source", "target"):
            try:
                ways[flow.name, side] = accesses(flow, side)
            except TwinlogError as error:
                ways[flow.name, side] = error
    reached = _reach({way for way in ways.values() if isinstance(way, ClusterAccess)}, timeout_s)

    def result(flow: Flow, side: str) -> _Reached:
        way = ways[flow.name, side]
        return reached[way] if isinstance(way, ClusterAccess) else _Reached(error=way)

    rows = []
    for flow in chosen:
        source, target = result(flow, "source"), result(flow, "target")
        row = _row(flow, source, target, selections[flow.name])
        # A flow that has never run has no state topic yet, and nothing more can be said of it.
        if source.metadata and target.metadata and state_topic(flow.source, flow.target) in target.metadata.topics:
            row = _look_closer(row, topology, flow, accesses, _taken(source.metadata, selections[flow.name]))
        rows.append(row)
    return Status(tuple(rows))


def _selection(topology: Topology, flow: Flow) -> TopicSelection:
    named = {other.name: naming_of(other) for other in topology.flows.values() if other.naming_policy}
    return TopicSelection(topology, flow, named, topics_of(flow))


def _reach(accesses: Iterable[ClusterAccess], timeout_s: float) -> Mapping[ClusterAccess, _Reached]:
    """Ask every cluster in a thread of its own. The threads are daemons: one that hangs cannot hold us up."""
    waiting = set(accesses)
    answers: queue.SimpleQueue[tuple[ClusterAccess, _Reached | Exception]] = queue.SimpleQueue()
    for access in waiting:
        threading.Thread(
            target=_ask_into, args=(answers, access, timeout_s), name=f"status of {access.alias}", daemon=True
        ).start()
    found: dict[ClusterAccess, _Reached] = {}
    deadline = time.monotonic() + timeout_s + _GRACE_S
    while waiting:
        try:
            access, answer = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            break
        if isinstance(answer, Exception):
            raise answer
        found[access] = answer
        waiting.discard(access)
    for access in waiting:
        message = f"cluster {access.alias} ({access.bootstrap_servers}) did not answer within {timeout_s:g} s"
        found[access] = _Reached(error=ClusterUnreachableError(message))
    return found


def _ask_into(
    answers: queue.SimpleQueue[tuple[ClusterAccess, _Reached | Exception]], access: ClusterAccess, timeout_s: float
) -> None:
    try:
        answers.put((access, _ask(access, timeout_s)))
    except Exception as error:  # noqa: BLE001 - a mistake of ours, raised again by who waits
        answers.put((access, error))


def _ask(access: ClusterAccess, timeout_s: float) -> _Reached:
    deadline = time.monotonic() + timeout_s
    try:
        with access.raw(timeout_s) as client:
            left_s = max(0.0, deadline - time.monotonic())
            return _Reached(metadata=client.run(client.metadata(timeout_s=left_s)))
    except TwinlogError as error:
        return _Reached(error=error)


def _row(flow: Flow, source: _Reached, target: _Reached, selection: TopicSelection) -> FlowStatus:
    sides = _side(flow.source, source), _side(flow.target, target)
    taken = None if source.metadata is None else _taken(source.metadata, selection)
    return FlowStatus(
        flow=flow.name,
        state=_state(flow, sides),
        source=sides[0],
        target=sides[1],
        topics=None if taken is None else len(taken),
        partitions=None if taken is None else sum(len(topic.partitions) for topic in taken),
    )


def _taken(source: ClusterMetadata, selection: TopicSelection) -> list[Topic]:
    return [topic for topic in source.topics.values() if selection.left_out(topic.name) is None]


def _look_closer(
    row: FlowStatus, topology: Topology, flow: Flow, accesses: AccessFor, taken: list[Topic]
) -> FlowStatus:
    """The row with the flow's state, its lag and its last run."""
    kept = state_topic(flow.source, flow.target)
    try:
        with accesses(flow, "target").raw() as there, accesses(flow, "source").raw(beside=there) as here:
            record = there.run(FlowStore(there, flow.name, kept).read())
            lag = there.run(measure(here, there, flow, naming_of(flow), taken))
        last_run = Ledger(topology.ledger_for(flow), flow.source, flow.target).last_run()
    except TwinlogError as error:
        return replace(row, problem=mask(str(error)))
    return replace(
        row,
        state=str(record.state) if flow.enabled else row.state,
        lag_records=lag.records,
        lag_seconds=None if lag.seconds is None else round(lag.seconds, 3),
        lag=lag.topics,
        last_run=last_run,
    )


def _state(flow: Flow, sides: Iterable[SideStatus]) -> str:
    if not flow.enabled:
        return "disabled"
    return "active" if all(side.reachable for side in sides) else "unreachable"


def _side(alias: str, reached: _Reached) -> SideStatus:
    if reached.metadata is None:
        error = reached.error or TwinlogError(f"cluster {alias} was not asked")
        return SideStatus(
            alias,
            reachable=False,
            error=mask(str(error)),
            exit_code=error.exit_code,
            retriable=error.retriable,
        )
    topics = [topic for topic in reached.metadata.topics.values() if not topic.internal]
    return SideStatus(
        cluster=alias,
        reachable=True,
        brokers=len(reached.metadata.brokers),
        topics=len(topics),
        partitions=sum(len(topic.partitions) for topic in topics),
    )
