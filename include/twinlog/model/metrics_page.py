"""Writes docs/metrics.md from the metrics themselves: `python -m twinlog.model.metrics_page > docs/metrics.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from twinlog.model.metrics import REGISTRY, Metric

_INTRODUCTION = """\
# Metrics

<!-- Written by `make docs` from include/twinlog/model/metrics.py; change it there. -->

All are gauges: each is a figure of the last run, the last canary or the last look at a flow. What is not known has no
sample, never a 0.

- **Prometheus**, without Airflow: `--metrics FILE` of `twinlog mirror`, `canary` and `reconcile` of a flow, and of
  `twinlog status`, writes Prometheus' text format for the textfile collector of its node exporter. The file is
  replaced as a whole and readable by all. Give each command and flow a file of its own, ending in `.prom`; a run that
  was skipped leaves the last one's as it is, and one that an error ended leaves its figures and says what kind of error
  it was (`twinlog_errors`). How old a file is shows in the collector's own `node_textfile_mtime_seconds`.
- **Airflow**: the tasks of a flow send the same through Airflow's metrics: `plan`, `copy`, `record` and `checkpoint`
  those of a run and its copier, `status` those of a look, `canary` and `reconcile` theirs, and each whether an error
  ended it. Names and labels, which are tags there, are the same, in the characters that Airflow takes: the flow
  nyc->lon is `nyc_to_lon`. The tags are what tells flows and topics apart, so they need a receiver that has them:
  OpenTelemetry, Datadog, or StatsD with `statsd_influxdb_enabled`. What is infinite is left out there.
- **Grafana**: `include/grafana/twinlog.json` is a dashboard for a Prometheus that has either, to be imported as it is;
  Airflow puts `airflow_` before the names.
"""


def page() -> str:
    """The whole page, as docs/metrics.md must be."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _INTRODUCTION
    sections: dict[str, list[Metric]] = {}
    for metric in REGISTRY.values():
        sections.setdefault(metric.section, []).append(metric)
    for number, (title, metrics) in enumerate(sections.items()):
        if number:
            yield ""
        yield f"## {title}\n"
        yield "| metric | labels | says |"
        yield "|---|---|---|"
        for metric in metrics:
            labels = ", ".join(f"`{label}`" for label in metric.labels)
            note = "" if metric.dashboard else " *Not on the dashboard.*"
            yield f"| `{metric.name}` | {labels} | {metric.help}{note} |"


if __name__ == "__main__":
    sys.stdout.write(page())
