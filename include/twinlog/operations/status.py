"""What can be said of each flow right now: are both its clusters there, what does it mirror, and how far behind is it.

All clusters are asked at once, each once however many flows share it, and the answer comes within the time-out. A
cluster that cannot be reached is part of the result and hides nothing of the others.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.metadata import ClusterMetadata, Topic
from twinlog.cluster.secrets import mask
from twinlog.errors import ErrorKind, TwinlogError
from twinlog.intake.extensions import naming_of, topics_of
from twinlog.ledger.store import Ledger
from twinlog.model.flow_state import State
from twinlog.model.objectives import Objective, Objectives, recovery_point
from twinlog.model.selection import TopicSelection
from twinlog.model.topology import Flow, Topology
from twinlog.operations.asking import ask_all
from twinlog.operations.closer_look import AccessFor, CloserLook, look_at_target, look_closer
from twinlog.operations.group_status import readiness_of_flows
from twinlog.operations.lag import TopicLag
from twinlog.operations.preflight import PreflightWarning
from twinlog.operations.readiness import GroupReadiness, Readiness
from twinlog.operations.recovery_series import RecoverySeries
from twinlog.operations.source_groups import NAMED

DEFAULT_TIMEOUT_S = 15.0
_DEPENDS_ON_SOURCE = frozenset({str(State.ACTIVE), str(State.PAUSED)})


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
    error_kind: ErrorKind | None = None


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
    heartbeat_age_s: float | None = None
    """Of the newest heartbeat that has reached the target."""
    objectives: Objectives = field(default_factory=Objectives)
    """Recovery point and time: what is wanted, and what was measured."""
    preflight: tuple[PreflightWarning, ...] = ()
    """What would hurt if a broker were lost, on either side."""
    problem: str | None = None
    """Why the state or the lag could not be read although both clusters were reached."""
    problem_kinds: tuple[ErrorKind, ...] = ()
    exit_code: int = 0
    last_run: str | None = None
    groups_ready: int | None = None
    groups_not_ready: int | None = None
    groups_as_of: str | None = None
    """When the groups were looked at: now where they were asked for, otherwise at the end of the last pass."""
    groups_age_s: float | None = None
    """How long ago that was."""
    groups: tuple[GroupReadiness, ...] = ()
    """Each of them, where they were asked for."""
    last_verdict: str | None = None
    last_verdict_age_s: float | None = None
    """How long ago the reconciliation began that said it."""


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
        """0 where every cluster was reached and no objective is missed, otherwise that of the worst error."""
        codes = [side.exit_code for side in self.sides] + [flow.exit_code for flow in self.flows]
        return max([*codes, 1 if self.missed else 0])

    @property
    def missed(self) -> list[str]:
        """A sentence for each objective that is missed."""
        return [sentence for flow in self.flows for sentence in flow.objectives.missed(flow.flow)]

    def to_json(self) -> dict[str, Any]:
        rows = [asdict(flow) for flow in self.flows]
        for flow, row in zip(self.flows, rows, strict=True):
            del row["exit_code"]
            # Airflow keeps lists as they are, and wraps tuples.
            row["lag"], row["problem_kinds"] = list(row["lag"]), [str(kind) for kind in row["problem_kinds"]]
            for group in row["groups"]:
                group["reasons"], group["offsets"] = list(group["reasons"]), list(group["offsets"])
            row["groups"] = list(row["groups"])
            row["objectives"] = flow.objectives.to_json()
            row["preflight"] = [warning.to_json() for warning in flow.preflight]
            for side in (row["source"], row["target"]):
                del side["exit_code"], side["retriable"]
        return {"flows": rows, "unreachable": self.unreachable}


def status(
    topology: Topology,
    accesses: AccessFor,
    flows: Sequence[str] | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    *,
    groups: bool = False,
) -> Status:
    """The status of the flows that are named, or of all that are enabled; with `groups`, every group's too."""
    chosen = (
        [topology.flow(name) for name in flows]
        if flows is not None
        else [flow for flow in topology.flows.values() if flow.enabled]
    )
    selections = {flow.name: _selection(topology, flow) for flow in chosen}
    deadline = time.monotonic() + timeout_s
    ways: dict[tuple[str, str], ClusterAccess | TwinlogError] = {}
    for flow in chosen:
        for side in ("source", "target"):
            try:
                ways[flow.name, side] = accesses(flow, side)
            except TwinlogError as error:
                ways[flow.name, side] = error
    clusters = {way for way in ways.values() if isinstance(way, ClusterAccess)}
    reached = ask_all(
        {way: functools.partial(_ask, way, timeout_s) for way in clusters},
        timeout_s,
        lambda way: f"cluster {way.alias} ({way.bootstrap_servers})",
    )

    def found(flow: Flow, side: str) -> ClusterMetadata | TwinlogError:
        way = ways[flow.name, side]
        return reached[way] if isinstance(way, ClusterAccess) else way

    rows = {
        flow.name: _row(flow, found(flow, "source"), found(flow, "target"), selections[flow.name]) for flow in chosen
    }
    looks = {}
    for flow in chosen:
        source, target = found(flow, "source"), found(flow, "target")
        if isinstance(source, ClusterMetadata) and isinstance(target, ClusterMetadata):
            taken = _taken(source, selections[flow.name])
            looks[flow.name] = functools.partial(look_closer, topology, flow, accesses, taken, (source, target))
        elif isinstance(target, ClusterMetadata):
            looks[flow.name] = functools.partial(look_at_target, topology, flow, accesses, target)
    closer = ask_all(looks, max(0.0, deadline - time.monotonic()), lambda name: f"what {name} has done")
    rows = {name: _with_look(row, closer.get(name)) for name, row in rows.items()}
    fresh = {name for name, row in rows.items() if groups and row.last_run is not None}
    ready, failed = readiness_of_flows(topology, chosen, accesses, fresh, max(0.0, deadline - time.monotonic()))
    rows |= {name: _with_look(rows[name], error) for name, error in failed.items()}
    rows = {name: _with_groups(row, ready.get(name), listed=groups) for name, row in rows.items()}
    return Status(tuple(_with_objectives(topology, flow, rows[flow.name]) for flow in chosen))


def _selection(topology: Topology, flow: Flow) -> TopicSelection:
    named = {other.name: naming_of(other) for other in topology.flows.values() if other.naming_policy}
    return TopicSelection(topology, flow, named, topics_of(flow))


def _ask(access: ClusterAccess, timeout_s: float) -> ClusterMetadata:
    deadline = time.monotonic() + timeout_s
    with access.raw(timeout_s) as client:
        return client.run(client.metadata(timeout_s=max(0.0, deadline - time.monotonic())))


def _row(
    flow: Flow,
    source: ClusterMetadata | TwinlogError,
    target: ClusterMetadata | TwinlogError,
    selection: TopicSelection,
) -> FlowStatus:
    sides = _side(flow.source, source), _side(flow.target, target)
    taken = _taken(source, selection) if isinstance(source, ClusterMetadata) else None
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


def _with_look(row: FlowStatus, look: CloserLook | TwinlogError | None) -> FlowStatus:
    if look is None:
        return row
    if isinstance(look, TwinlogError):
        return _with_problem(row, look)
    row = replace(row, preflight=look.preflight)
    past = look.past
    if past is None:
        return row
    row = replace(
        row,
        heartbeat_age_s=None if past.heartbeat_age_s is None else round(past.heartbeat_age_s, 3),
        last_run=past.last_run,
        last_verdict=None if past.last_verdict is None else past.last_verdict.verdict,
        last_verdict_age_s=None if past.last_verdict is None else _age_s(past.last_verdict.at_ms),
    )
    if past.lag is None:
        # That the source does not answer is what people have to hear of a flow that still depends on it.
        return row if past.state in _DEPENDS_ON_SOURCE else replace(row, state=past.state)
    return replace(
        row,
        state=past.state,
        lag_records=past.lag.records,
        lag_seconds=None if past.lag.seconds is None else round(past.lag.seconds, 3),
        lag=past.lag.topics,
        problem=_not_known(row.source.cluster, past.lag.unknown),
        problem_kinds=(ErrorKind.UNREACHABLE,) if past.lag.unknown else (),
    )


def _with_problem(row: FlowStatus, error: TwinlogError) -> FlowStatus:
    """With one problem more."""
    told = [*([] if row.problem is None else [row.problem]), mask(str(error))]
    kinds = (*row.problem_kinds, error.counted_as)
    return replace(row, problem="; ".join(told), problem_kinds=kinds, exit_code=max(row.exit_code, error.exit_code))


def _not_known(cluster: str, topics: Sequence[str]) -> str | None:
    if not topics:
        return None
    named = ", ".join(topics[:NAMED]) + (", ..." if len(topics) > NAMED else "")
    return (
        f"the lag is not known: cluster {cluster} can't say where partitions of {len(topics):,} topics end ({named}); "
        "have they a leader?"
    )


def _with_groups(row: FlowStatus, found: Readiness | None, *, listed: bool) -> FlowStatus:
    if found is None:
        return row
    return replace(
        row,
        groups_ready=found.ready,
        groups_not_ready=found.not_ready,
        groups_as_of=datetime.fromtimestamp(found.at_ms / 1000, UTC).isoformat(timespec="seconds"),
        groups_age_s=_age_s(found.at_ms),
        groups=tuple(found.groups) if listed else (),
    )


def _with_objectives(topology: Topology, flow: Flow, row: FlowStatus) -> FlowStatus:
    try:
        last = RecoverySeries(Ledger(topology.ledger_for(flow), flow.source, flow.target)).last()
    except TwinlogError as error:
        return _with_problem(row, error)
    time_ = Objective(flow.recovery_time_seconds)
    if last is not None:
        time_ = Objective(flow.recovery_time_seconds, last.recovery_time_s, last.kind, last.at_ms)
    wanted = flow.recovery_point_seconds
    if row.state in (State.FAILED_OVER, State.FAILING_BACK):
        # The source is no longer where records come from: there is nothing of it left to lose.
        return replace(row, objectives=Objectives(Objective(wanted), time_))
    return replace(row, objectives=Objectives(recovery_point(wanted, row.lag_seconds, row.heartbeat_age_s), time_))


def _age_s(at_ms: int) -> float:
    return round(max(0.0, time.time() - at_ms / 1000), 3)


def _state(flow: Flow, sides: Iterable[SideStatus]) -> str:
    if not flow.enabled:
        return "disabled"
    return "active" if all(side.reachable for side in sides) else "unreachable"


def _side(alias: str, reached: ClusterMetadata | TwinlogError) -> SideStatus:
    if isinstance(reached, TwinlogError):
        return SideStatus(
            alias,
            reachable=False,
            error=mask(str(reached)),
            exit_code=reached.exit_code,
            retriable=reached.retriable,
            error_kind=reached.counted_as,
        )
    topics = [topic for topic in reached.topics.values() if not topic.internal]
    return SideStatus(
        cluster=alias,
        reachable=True,
        brokers=len(reached.brokers),
        topics=len(topics),
        partitions=sum(len(topic.partitions) for topic in topics),
    )
