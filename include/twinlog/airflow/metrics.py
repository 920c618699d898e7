"""Samples to Airflow's own metrics, wherever those go (StatsD, Datadog, OpenTelemetry): a gauge each, labels as tags.

Airflow drops a metric whose tags hold other characters than letters, digits and `_.-`, so they are written in these:
the flow nyc->lon is `nyc_to_lon`. What is infinite is left out: StatsD has no word for it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from twinlog.errors import ErrorKind, kind_of

if TYPE_CHECKING:
    from twinlog.model.metrics import Sample

Result = TypeVar("Result")


def send(samples: Iterable[Sample]) -> None:
    """One gauge a sample; to be called in a task, where Airflow has set up where they go."""
    from airflow.sdk.observability import stats  # noqa: PLC0415 - no matter of parsing a DAG

    for sample in samples:
        if math.isfinite(sample.value):
            tags = {
                name: stats.normalize_name_for_stats(value.replace("->", "_to_"), log_warning=False)
                for name, value in sample.labels.items()
            }
            stats.gauge(sample.metric.name, sample.value, tags=tags)


def tells_errors(step: str) -> Callable[[Callable[[str], Result]], Callable[[str], Result]]:
    """Of a task's function, which takes the flow's name: sends what kind of error ends it, or that none does."""

    def told(function: Callable[[str], Result]) -> Callable[[str], Result]:
        @functools.wraps(function)
        def telling(flow_name: str) -> Result:
            with errors_told(flow_name, step):
                return function(flow_name)

        return telling

    return told


@contextmanager
def errors_told(flow_name: str, step: str) -> Iterator[None]:
    """Sends what kind of error ended the block, or that none did; who skips has met none."""
    from airflow.sdk.exceptions import AirflowSkipException, DownstreamTasksSkipped  # noqa: PLC0415 - as above

    try:
        yield
    except (AirflowSkipException, DownstreamTasksSkipped):
        tell_errors(flow_name, step)
        raise
    except Exception as error:
        tell_errors(flow_name, step, kind_of(error))
        raise
    tell_errors(flow_name, step)


def tell_errors(flow_name: str, step: str, *kinds: ErrorKind) -> None:
    """Sends what kinds of error a step of a flow has met."""
    from twinlog.model.metrics import error_samples  # noqa: PLC0415 - no matter of parsing a DAG

    send(error_samples(flow_name, step, *kinds))
