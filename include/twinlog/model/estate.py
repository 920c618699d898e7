"""What can be said about an estate as a whole, before anything runs.

Each check takes a topology and yields findings; an error is something that cannot come true, a warning something
that will, and that its readers should have chosen. Only enabled flows count. docs/architectures.md explains each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from twinlog.model.paths import Crossing, crossings, share_topics
from twinlog.model.schedule import longest_gap_s
from twinlog.model.settings import settings_of
from twinlog.model.topology import Flow, Topology

_DOC = "docs/architectures.md"


class Severity(StrEnum):
    """How bad a finding is: an error makes the check fail."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Finding:
    """One thing to know about a flow, and what to do about it."""

    severity: Severity
    flow: str
    message: str
    remedy: str


def check(topology: Topology) -> list[Finding]:
    """Every finding, errors first; otherwise in the order of the file's flows."""
    found: list[Finding] = []
    for flow in topology.flows.values():
        if flow.enabled:
            found += _recovery_point(flow)
            found += _two_way(topology, flow)
            found += _placement(topology, flow)
    found += [_two_paths(crossing) for crossing in crossings(topology)]
    return sorted(found, key=lambda finding: finding.severity is not Severity.ERROR)


def planned_settings(topology: Topology) -> dict[str, list[str]]:
    """Settings that nothing acts on yet and that a flow sets otherwise than by default, with those flows."""
    found: dict[str, list[str]] = {}
    for item in settings_of(Flow).values():
        flows = [
            flow.name
            for flow in topology.flows.values()
            if item.planned and getattr(flow, item.attribute) != item.default
        ]
        if flows:
            found[item.name] = flows
    return found


def _recovery_point(flow: Flow) -> Iterator[Finding]:
    wanted = flow.recovery_point_seconds
    if wanted is None:
        return
    if wanted == 0:
        yield Finding(
            Severity.ERROR,
            flow.name,
            "a recovery point of 0 is wanted, and a mirror is always behind its source",
            f"Build a stretch cluster ({_DOC}#stretch-cluster), or set recovery.point.seconds above the "
            f"schedule's interval.",
        )
        return
    try:
        gap = longest_gap_s(flow.schedule)
    except ValueError as error:
        yield Finding(Severity.ERROR, flow.name, f"the schedule cannot be read: {error}", "Correct the schedule.")
        return
    if gap is None:
        yield Finding(
            Severity.ERROR,
            flow.name,
            f"a recovery point of {wanted} s is wanted, but with the schedule {flow.schedule} nothing starts a "
            f"second run",
            f"Set a schedule that repeats, or @continuous; for less than a mirror can give see {_DOC}#stretch-cluster.",
        )
    elif wanted < gap:
        yield Finding(
            Severity.ERROR,
            flow.name,
            f"a recovery point of {wanted} s is wanted, but the schedule {flow.schedule} leaves up to {gap} s "
            f"between two runs",
            f"Run more often (@continuous at best), or set recovery.point.seconds to {gap} or more; for less than "
            f"a mirror can give see {_DOC}#stretch-cluster.",
        )


def _two_way(topology: Topology, flow: Flow) -> Iterator[Finding]:
    """Reported once, for the direction that stands first in the file."""
    back = topology.flows.get(f"{flow.target}->{flow.source}")
    if back is None or not back.enabled or flow.naming != "identity" or back.naming != "identity":
        return
    names = list(topology.flows)
    if names.index(back.name) < names.index(flow.name) or not share_topics(flow, back):
        return
    yield Finding(
        Severity.WARNING,
        flow.name,
        f"topics are mirrored both ways between {flow.source} and {flow.target} under one name: there is no global "
        f"order, one group id on both sides processes everything twice, and reads are stale for users who change "
        f"sides",
        f"Use naming: prefixed; or keep each key's producers on one side, run each group on one side at a time, and "
        f"pin users to a side ({_DOC}#two-way-mirroring-under-one-name).",
    )


def _placement(topology: Topology, flow: Flow) -> Iterator[Finding]:
    source, target = topology.clusters[flow.source], topology.clusters[flow.target]
    places = (
        ("Spark", "spark", topology.spark_for(flow), source.spark, target.spark),
        ("ledger", "ledger", topology.ledger_for(flow), source.ledger, target.ledger),
    )
    for what, key, used, beside_source, beside_target in places:
        if used is None or used != beside_source or used == beside_target:
            continue
        where = f"Give {flow.target} a {key} of its own" if beside_target is None else f"Leave {key} out of the flow"
        yield Finding(
            Severity.WARNING,
            flow.name,
            f"its {what} ({used}) stands beside the source {flow.source}, and is gone on the day {flow.source} is",
            f"{where}, so that the one beside the target serves ({_DOC}#where-spark-and-the-ledger-stand).",
        )


def _two_paths(crossing: Crossing) -> Finding:
    short, long = (" then ".join(path) for path in crossing.paths)
    topics = f"{crossing.topic} of {crossing.origin}"
    first, second = crossing.names
    if first == second:
        message = (
            f"{topics} reaches {crossing.target} by two paths, {short} and {long}, both as {first}: its readers see "
            f"every record twice"
        )
    else:
        message = (
            f"{topics} reaches {crossing.target} by two paths, {short} and {long}, as {first} and as {second}: it is "
            f"carried and kept twice"
        )
    return Finding(
        Severity.WARNING,
        crossing.paths[1][-1],
        message,
        f"Leave it out of one of them with topics.exclude ({_DOC}#two-paths).",
    )
