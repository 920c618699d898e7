"""Results of operations as samples: pure functions, but for the one that asks clusters for what status leaves out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from twinlog.cluster.copier import Outcome
from twinlog.cluster.secrets import mask
from twinlog.errors import TwinlogError
from twinlog.ledger.store import Ledger
from twinlog.model import metrics as m
from twinlog.model.figures import Figures, Limit, total
from twinlog.model.findings import FindingKind
from twinlog.model.metrics import Metric, Sample
from twinlog.model.reconciliation import ALLOWED, Kind, Verdict
from twinlog.model.topology import Topology
from twinlog.operations.canary import CanaryResult
from twinlog.operations.closer_look import AccessFor
from twinlog.operations.mirror_result import CopyResult, MirrorResult, RecordedRun
from twinlog.operations.pace import Pace, measure_pace
from twinlog.operations.reconcile_result import Reconciliation
from twinlog.operations.status import FlowStatus, Status
from twinlog.operations.storage import storage_of


@dataclass(frozen=True, slots=True)
class Collected:
    """What was measured, and a sentence for each flow of which something could not be."""

    samples: list[Sample] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def collect(topology: Topology, accesses: AccessFor, found: Status) -> Collected:
    """All samples of a status, with the pace of each flow that has run."""
    collected = Collected()
    for row in found.flows:
        collected.samples.extend(status_samples(row))
        if row.lag_records is None and not row.lag:
            continue
        try:
            pace = _pace(topology, accesses, row)
        except TwinlogError as error:
            collected.problems.append(f"{row.flow}: {mask(str(error))}")
        else:
            collected.samples.extend(pace_samples(row.flow, pace))
    return collected


def _pace(topology: Topology, accesses: AccessFor, row: FlowStatus) -> Pace:
    flow = topology.flow(row.flow)
    ledger = Ledger(topology.ledger_for(flow), flow.source, flow.target)
    told = storage_of(f"the ledger of {flow.name}")
    with told, accesses(flow, "target").raw() as target, accesses(flow, "source").raw(beside=target) as source:
        return measure_pace(source, target, flow, [topic.topic for topic in row.lag], ledger)


def status_samples(row: FlowStatus) -> Iterator[Sample]:
    """What a look at a flow has found."""
    flow = row.flow
    for name, side in (("source", row.source), ("target", row.target)):
        yield m.CLUSTER_REACHED(side.reachable, flow=flow, side=name, cluster=side.cluster)
    sides = (side.error_kind for side in (row.source, row.target) if side.error_kind is not None)
    yield from m.error_samples(flow, "status", *sides, *row.problem_kinds)
    for topic in row.lag:
        yield from _known(m.LAG_RECORDS, topic.records, flow=flow, topic=topic.topic)
        yield from _known(m.LAG_SECONDS, topic.seconds, flow=flow, topic=topic.topic)
    yield from _known(m.HEARTBEAT_AGE, row.heartbeat_age_s, flow=flow)
    yield from _known(m.RECOVERY_POINT, row.objectives.point.measured_s, flow=flow)
    yield from _known(m.RECOVERY_TIME, row.objectives.time.measured_s, flow=flow)
    for name, objective in (("point", row.objectives.point), ("time", row.objectives.time)):
        yield from _known(m.RECOVERY_WANTED, objective.wanted_s, flow=flow, objective=name)
        if objective.met is not None:
            yield m.RECOVERY_MISSED(not objective.met, flow=flow, objective=name)
    yield from _known(m.GROUPS_READY, row.groups_ready, flow=flow)
    yield from _known(m.GROUPS_NOT_READY, row.groups_not_ready, flow=flow)
    yield from _known(m.GROUPS_AGE, row.groups_age_s, flow=flow)
    if row.last_verdict is not None:
        yield m.TWIN_EQUAL(row.last_verdict == Verdict.EQUAL, flow=flow)
    yield from _known(m.VERDICT_AGE, row.last_verdict_age_s, flow=flow)


def pace_samples(flow: str, pace: Pace) -> Iterator[Sample]:
    """Whether a flow keeps up."""
    for name, topic in pace.topics.items():
        yield from _known(m.LAG_BYTES, topic.waiting_bytes, flow=flow, topic=name)
        yield from _known(m.TIME_UNTIL_EXPIRY, topic.until_expiry_s, flow=flow, topic=name)
    yield from _known(m.SOURCE_RECORDS_PER_SECOND, pace.source_records_per_s, flow=flow)
    yield from _known(m.SOURCE_BYTES_PER_SECOND, pace.source_bytes_per_s, flow=flow)
    yield from _known(m.COPY_CAPACITY, pace.capacity_bytes_per_s, flow=flow)
    yield from _known(m.TIME_TO_CATCH_UP, pace.catch_up_s, flow=flow)


def run_samples(result: MirrorResult, ended_s: float | None = None) -> Iterator[Sample]:
    """What a run did; nothing is known of one that was skipped."""
    if result.skipped is not None:
        return
    yield from recorded_samples(result.flow, result.recorded, result.seconds, ended_s)
    yield from copy_samples(result)


def recorded_samples(
    flow: str, recorded: RecordedRun, seconds: float, ended_s: float | None = None
) -> Iterator[Sample]:
    """How much a run copied, in so many seconds of copying."""
    yield m.RUN_END(time.time() if ended_s is None else ended_s, flow=flow)
    yield m.RUN_RECORDS(recorded.records, flow=flow)
    yield m.RUN_BYTES(recorded.bytes, flow=flow)
    for kind, offsets in sorted(recorded.gaps.items()):
        yield m.RUN_GAPS(offsets, flow=flow, kind=kind)
    if seconds:
        yield m.COPY_RECORDS_PER_SECOND(recorded.records / seconds, flow=flow)
        yield m.COPY_BYTES_PER_SECOND(recorded.bytes / seconds, flow=flow)


def copy_samples(result: CopyResult) -> Iterator[Sample]:
    """How copying went; nothing is known of a run that was skipped."""
    if result.skipped is not None:
        return
    flow = result.flow
    yield m.RUN_SECONDS(result.seconds, flow=flow)
    yield m.RUN_LEFT(result.left_records, flow=flow)
    for found in FindingKind:
        partitions = {finding.partition for finding in result.findings if finding.kind is found}
        yield m.FINDINGS(len(partitions), flow=flow, kind=found)
    for outcome in Outcome:
        if outcome is not Outcome.DONE:
            yield m.LANES_NOT_DONE(sum(lane.outcome is outcome for lane in result.lanes), flow=flow, outcome=outcome)
    yield from copier_samples(flow, total(lane.figures for lane in result.lanes))


def copier_samples(flow: str, figures: Figures) -> Iterator[Sample]:
    """What the lanes did and waited for; means of nothing are not known."""
    if figures.fetches:
        yield m.FETCH_BYTES(figures.mean_fetch_bytes, flow=flow)
    if figures.batches:
        yield m.BATCH_BYTES(figures.mean_batch_bytes, flow=flow)
    if figures.produces:
        yield m.IN_FLIGHT(figures.mean_in_flight, flow=flow)
    if not figures.seconds:
        return
    yield m.FETCHES_PER_SECOND(figures.fetches / figures.seconds, flow=flow)
    yield m.RETRIES(figures.retries, flow=flow)
    waited = {
        "source": figures.waited_source_s,
        "target": figures.waited_target_s,
        "throttle": figures.throttled_s,
        "quota": figures.quota_s,
    }
    waited["work"] = max(0.0, figures.seconds - sum(waited.values()))
    for spent, seconds in waited.items():
        yield m.TIME_RATIO(seconds / figures.seconds, flow=flow, spent=spent)
    for limit in Limit:
        yield m.LIMITED_BY(figures.limited_by is limit, flow=flow, limit=limit)


def canary_samples(result: CanaryResult) -> Iterator[Sample]:
    """How a round of canaries fared."""
    flow, verdict = result.flow, result.verdict
    yield from _known(m.CANARY_LATENCY, verdict.latency_p50_s, flow=flow, quantile="0.5")
    yield from _known(m.CANARY_LATENCY, verdict.latency_p99_s, flow=flow, quantile="0.99")
    yield m.CANARY_SENT(verdict.sent, flow=flow)
    for fault, count in verdict.faults.items():
        yield m.CANARY_FAULTS(count, flow=flow, fault=fault)


def reconcile_samples(result: Reconciliation) -> Iterator[Sample]:
    """What a reconciliation found; every kind of difference has a figure, so that one that is gone is seen to be."""
    flow = result.flow
    yield m.RECONCILED_AT(result.at_ms / 1000, flow=flow)
    yield m.RECONCILE_EQUAL(result.verdict is Verdict.EQUAL, flow=flow)
    for kind in Kind:
        if kind not in ALLOWED:
            yield m.RECONCILE_DIFFERENCES(result.kinds.get(kind.value, 0), flow=flow, kind=kind)
    yield m.RECONCILE_RECORDS(result.records, flow=flow)
    yield m.RECONCILE_BYTES(result.bytes_read, flow=flow)
    yield m.RECONCILE_CROSSED(result.bytes_crossed, flow=flow)
    yield m.RECONCILE_SECONDS(result.seconds, flow=flow)


def _known(metric: Metric, value: float | None, **labels: str) -> Iterator[Sample]:
    if value is not None:
        yield metric(value, **labels)
