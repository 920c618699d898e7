"""Every metric that Twinlog emits: its name, its labels and what it says; docs/metrics.md is written from this.

All are gauges. A run is a process that ends, so nothing could go on counting where the last one stopped; a figure is
that of the last run, the last canary or the last look, and what is not known has no sample, never a 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from twinlog.errors import ErrorKind

_NAME = re.compile(r"twinlog_[a-z0-9_]+")


@dataclass(frozen=True, slots=True)
class Metric:
    """What can be measured; `dashboard` is false where the ready dashboard leaves it out."""

    name: str
    labels: tuple[str, ...]
    help: str
    section: str
    dashboard: bool = True

    def __call__(self, value: float, **labels: str) -> Sample:
        """A sample of it; one with other labels than the metric's is a fault of the caller's."""
        if tuple(labels) != self.labels:
            raise ValueError(f"{self.name} has the labels {self.labels}, not {tuple(labels)}")
        return Sample(self, labels, float(value))


@dataclass(frozen=True, slots=True)
class Sample:
    """One figure."""

    metric: Metric
    labels: Mapping[str, str]
    value: float


REGISTRY: dict[str, Metric] = {}
"""All of them by name, in the order of docs/metrics.md."""


def _metric(name: str, labels: tuple[str, ...], text: str, section: str, *, dashboard: bool = True) -> Metric:
    if not _NAME.fullmatch(name) or name in REGISTRY:
        raise ValueError(f"{name} is no name for another metric")
    REGISTRY[name] = Metric(name, labels, text, section, dashboard)
    return REGISTRY[name]


def _listed(words: Iterable[str]) -> str:
    *others, last = (f"`{word}`" for word in words)
    return f"{', '.join(others)} or {last}"


_FLOW = ("flow",)
_TOPIC = ("flow", "topic")

STATUS = "A look at a flow: `twinlog status`, and the status task"
CLUSTER_REACHED = _metric(
    "twinlog_cluster_reached",
    ("flow", "side", "cluster"),
    "1 where this end of the flow was reached, otherwise 0.",
    STATUS,
)
LAG_RECORDS = _metric(
    "twinlog_lag_records",
    _TOPIC,
    "Offsets of the source that are not copied yet; absent where a partition can't be looked at.",
    STATUS,
)
LAG_BYTES = _metric(
    "twinlog_lag_bytes", _TOPIC, "The same in bytes, by the mean size of an offset in each partition's log.", STATUS
)
LAG_SECONDS = _metric(
    "twinlog_lag_seconds", _TOPIC, "Age of the oldest record that is not copied yet; 0 where all are.", STATUS
)
SOURCE_RECORDS_PER_SECOND = _metric(
    "twinlog_source_records_per_second",
    _FLOW,
    "Records that the flow's topics gained, over those stamped in the last 5 minutes.",
    STATUS,
)
SOURCE_BYTES_PER_SECOND = _metric(
    "twinlog_source_bytes_per_second", _FLOW, "The same in bytes, by the mean size of an offset.", STATUS
)
COPY_CAPACITY = _metric(
    "twinlog_copy_capacity_bytes_per_second",
    _FLOW,
    "What the flow can copy: the fastest of its recent runs that were at it for a second or more, by the ledger.",
    STATUS,
)
TIME_TO_CATCH_UP = _metric(
    "twinlog_time_to_catch_up_seconds",
    _FLOW,
    "Time to copy the lag at the copy capacity while the source goes on at its rate; +Inf where it would grow.",
    STATUS,
)
TIME_UNTIL_EXPIRY = _metric(
    "twinlog_time_until_expiry_seconds",
    _TOPIC,
    "Time until retention on the source, by age or by size, overtakes the position; absent where nothing waits or "
    "nothing expires. Negative where the record is due and its segment is not deleted yet.",
    STATUS,
)
HEARTBEAT_AGE = _metric(
    "twinlog_heartbeat_age_seconds",
    _FLOW,
    "Age of the newest heartbeat that has reached the target: the measured recovery point.",
    STATUS,
)
RECOVERY_POINT = _metric(
    "twinlog_recovery_point_seconds",
    _FLOW,
    "Seconds of records that would be lost if the source went now: by the lag, or by the newest heartbeat where the "
    "source does not answer.",
    STATUS,
)
RECOVERY_TIME = _metric(
    "twinlog_recovery_time_seconds",
    _FLOW,
    "What the last drill or takeover took, until groups could read; absent before the first.",
    STATUS,
)
RECOVERY_WANTED = _metric(
    "twinlog_recovery_wanted_seconds",
    ("flow", "objective"),
    "What the flow's settings ask for; objective `point` or `time`.",
    STATUS,
    dashboard=False,
)
RECOVERY_MISSED = _metric(
    "twinlog_recovery_objective_missed",
    ("flow", "objective"),
    "1 where what was measured is more than what is wanted, 0 where it is not; absent where nothing is wanted or was "
    "measured. Alert on it.",
    STATUS,
)
GROUPS_READY = _metric("twinlog_groups_ready", _FLOW, "Consumer groups that can fail over now.", STATUS)
GROUPS_NOT_READY = _metric("twinlog_groups_not_ready", _FLOW, "Consumer groups that can't.", STATUS)
GROUPS_AGE = _metric(
    "twinlog_groups_age_seconds",
    _FLOW,
    "How long ago the groups were looked at for the two above.",
    STATUS,
    dashboard=False,
)
TWIN_EQUAL = _metric(
    "twinlog_twin_equal",
    _FLOW,
    "1 where the last reconciliation found nothing that differs, otherwise 0; absent before the first.",
    STATUS,
)
VERDICT_AGE = _metric("twinlog_verdict_age_seconds", _FLOW, "How long ago that reconciliation began.", STATUS)

RUN = "A run: `twinlog mirror`"
RUN_END = _metric("twinlog_run_end_timestamp_seconds", _FLOW, "When the last run ended, in seconds since 1970.", RUN)
RUN_SECONDS = _metric("twinlog_run_seconds", _FLOW, "How long it took.", RUN)
RUN_RECORDS = _metric("twinlog_run_records", _FLOW, "Records that it copied.", RUN)
RUN_BYTES = _metric("twinlog_run_bytes", _FLOW, "Bytes that it copied.", RUN, dashboard=False)
RUN_LEFT = _metric("twinlog_run_left_records", _FLOW, "Offsets that were ready and did not fit its budget.", RUN)
RUN_GAPS = _metric(
    "twinlog_run_gap_offsets", ("flow", "kind"), "Offsets it passed over that have no record on the target.", RUN
)
COPY_RECORDS_PER_SECOND = _metric("twinlog_copy_records_per_second", _FLOW, "Its records by its seconds.", RUN)
COPY_BYTES_PER_SECOND = _metric("twinlog_copy_bytes_per_second", _FLOW, "Its bytes by its seconds.", RUN)
FINDINGS = _metric(
    "twinlog_findings", ("flow", "kind"), "What kept partitions from being copied, by kind, one a partition.", RUN
)
LANES_NOT_DONE = _metric(
    "twinlog_lanes_not_done", ("flow", "outcome"), "Lanes that did not get to the end of their work.", RUN
)

COPIER = "The copier in a run, over all lanes"
FETCH_BYTES = _metric("twinlog_copier_fetch_bytes_mean", _FLOW, "Mean size of an answer of the source.", COPIER)
FETCHES_PER_SECOND = _metric(
    "twinlog_copier_fetches_per_second", _FLOW, "Fetch requests a second of a lane's time.", COPIER
)
BATCH_BYTES = _metric("twinlog_copier_batch_bytes_mean", _FLOW, "Mean size of a batch that was written.", COPIER)
IN_FLIGHT = _metric(
    "twinlog_copier_requests_in_flight_mean", _FLOW, "Mean number of Produce requests under way, of a lane.", COPIER
)
RETRIES = _metric("twinlog_copier_retries", _FLOW, "How often a lane began again at its committed positions.", COPIER)
TIME_RATIO = _metric(
    "twinlog_copier_time_ratio",
    ("flow", "spent"),
    "Share of the lanes' time: waiting for the `source`, for the `target`, for the flow's own `throttle`, for the "
    "brokers' `quota`, or at `work`.",
    COPIER,
)
LIMITED_BY = _metric(
    "twinlog_copier_limited_by",
    ("flow", "limit"),
    "1 for what took most of the time (`source`, `target`, `throttle` or `copier`), 0 for the others.",
    COPIER,
)

CANARY = "A canary: `twinlog canary`"
CANARY_LATENCY = _metric(
    "twinlog_canary_latency_seconds",
    ("flow", "quantile"),
    "From sending to being readable on the target, quantiles 0.5 and 0.99.",
    CANARY,
)
CANARY_SENT = _metric("twinlog_canary_sent_records", _FLOW, "Records of the last round.", CANARY)
CANARY_FAULTS = _metric(
    "twinlog_canary_faults",
    ("flow", "fault"),
    "Of them `lost`, `late` (not there yet when time was up), `doubled`, `out_of_order` and `altered`.",
    CANARY,
)

RECONCILIATION = "A reconciliation: `twinlog reconcile`"
RECONCILED_AT = _metric(
    "twinlog_reconcile_timestamp_seconds",
    _FLOW,
    "When the last one began, in seconds since 1970.",
    RECONCILIATION,
    dashboard=False,
)
RECONCILE_EQUAL = _metric(
    "twinlog_reconcile_equal",
    _FLOW,
    "1 where what it looked at is equal on both sides, 0 where something differs.",
    RECONCILIATION,
    dashboard=False,
)
RECONCILE_DIFFERENCES = _metric(
    "twinlog_reconcile_differences",
    ("flow", "kind"),
    "Records, ledger rows, settings, permissions and checkpoints that differ, by kind (`missing`, `altered`, ...).",
    RECONCILIATION,
)
RECONCILE_RECORDS = _metric(
    "twinlog_reconcile_records", _FLOW, "Records that it looked at.", RECONCILIATION, dashboard=False
)
RECONCILE_BYTES = _metric(
    "twinlog_reconcile_read_bytes", _FLOW, "Bytes that it read of both logs.", RECONCILIATION, dashboard=False
)
RECONCILE_CROSSED = _metric(
    "twinlog_reconcile_crossed_bytes",
    _FLOW,
    "Bytes that crossed from the source for it.",
    RECONCILIATION,
    dashboard=False,
)
RECONCILE_SECONDS = _metric("twinlog_reconcile_seconds", _FLOW, "How long it took.", RECONCILIATION, dashboard=False)


ENDED = "What ended with an error: every command with `--metrics`, and every task"
ERRORS = _metric(
    "twinlog_errors",
    ("flow", "step", "kind"),
    f"1 for the kind of error that ended a step when it was last tried, 0 for the others: {_listed(ErrorKind)}. Steps "
    "are `mirror`, `canary`, `reconcile` and `status`, for which it is what the look could not see, and in Airflow the "
    "tasks: `plan`, `copy`, `record`, `checkpoint` and so on.",
    ENDED,
)


def error_samples(flow: str, step: str, *kinds: ErrorKind) -> Iterator[Sample]:
    """What kinds of error ended a step, or stood in its way; every kind has a figure, so that one that is gone is seen
    to be."""
    for kind in ErrorKind:
        yield ERRORS(kind in kinds, flow=flow, step=step, kind=kind)


def exposition(samples: Iterable[Sample]) -> str:
    """The samples in Prometheus' text format; those of a metric stand together, as the format asks."""
    by_metric: dict[str, list[Sample]] = {}
    for sample in samples:
        by_metric.setdefault(sample.metric.name, []).append(sample)
    return "".join(f"{line}\n" for found in by_metric.values() for line in _lines(found))


def without(metric: Metric, text: str) -> str:
    """A text of `exposition` without the samples of one metric."""
    starts = (f"# HELP {metric.name} ", f"# TYPE {metric.name} ", f"{metric.name}{{")
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(starts))


def _lines(samples: list[Sample]) -> Iterator[str]:
    metric = samples[0].metric
    yield f"# HELP {metric.name} {_escaped(metric.help)}"
    yield f"# TYPE {metric.name} gauge"
    for sample in samples:
        labels = ",".join(f'{name}="{_quoted(value)}"' for name, value in sample.labels.items())
        yield f"{metric.name}{{{labels}}} {_number(sample.value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', r"\"")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(int(value)) if value.is_integer() else repr(value)
