"""Samples to Airflow's own metrics, wherever those go (StatsD, Datadog, OpenTelemetry): a gauge each, labels as tags.

Airflow drops a metric whose tags hold other characters than letters, digits and `_.-`, so they are written in these:
the flow nyc->lon is `nyc_to_lon`. What is infinite is left out: StatsD has no word for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twinlog.model.metrics import Sample


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
