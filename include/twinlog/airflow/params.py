"""The form that people see who start a mirror run by hand: each field explained, and checked before the run begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param

from twinlog.errors import ConfigurationError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from twinlog.model.topology import Flow
    from twinlog.operations.run_scope import Limits

MAX_BYTES = "max_bytes"
MAX_SECONDS = "max_seconds"
UNTIL = "until"
TOPICS = "topics"

_BACKFILL = "backfill"
"""Airflow's word for the type of a run that somebody's backfill of a period has made."""

_MOMENT = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?$"
"""Said beside the format, which Airflow only checks where an extra package is installed."""


def run_params(flow: Flow) -> dict[str, Param]:
    """The fields; a run that is started without any takes what the flow says."""
    return {
        MAX_BYTES: Param(
            None,
            type=["null", "integer"],
            minimum=1,
            maximum=flow.budget_bytes,
            title="Byte budget",
            description=f"End after about so many bytes; the flow's own limit is {flow.budget_bytes:,}.",
        ),
        MAX_SECONDS: Param(
            None,
            type=["null", "integer"],
            minimum=1,
            maximum=flow.budget_seconds,
            title="Time budget (seconds)",
            description=f"End after so many seconds of copying; the flow's own limit is {flow.budget_seconds:,}.",
        ),
        UNTIL: moment_param(
            "Up to this time",
            "Copy only what was written before; every partition ends at its first record that is stamped with this "
            "time or a later one. What was copied already stays.",
        ),
        TOPICS: Param(
            None,
            type=["null", "array"],
            items={"type": "string", "minLength": 1, "maxLength": 249},
            uniqueItems=True,
            title="Only these topics",
            description="Names as they are on the source, one a line. Without any, all that the flow mirrors. A run of "
            "some topics writes no checkpoints, since it would find the others behind.",
        ),
    }


def run_limits(context: Context) -> Limits:
    """What the form was filled in with; a run that is part of Airflow's own backfill copies its data interval.

    Everybody else's run takes what is there: an interval says when it was due, not what is to be copied.
    """
    asked = _asked_limits(context["params"])
    dag_run = context["dag_run"]
    begins, ends = dag_run.data_interval_start, dag_run.data_interval_end
    if not is_backfill(context) or begins is None or ends is None:
        return asked
    until_ms = _ms(ends) if asked.until_ms is None else min(asked.until_ms, _ms(ends))
    return replace(asked, from_ms=_ms(begins), until_ms=until_ms)


def is_backfill(context: Context) -> bool:
    """Whether the run is part of Airflow's own backfill, whose intervals each want to be copied."""
    return bool(context["dag_run"].run_type == _BACKFILL)


def _asked_limits(params: Mapping[str, Any]) -> Limits:
    from twinlog.operations.run_scope import Limits  # noqa: PLC0415 - brings the Kafka clients

    until, topics = params.get(UNTIL), params.get(TOPICS)
    return Limits(
        max_bytes=params.get(MAX_BYTES),
        max_seconds=params.get(MAX_SECONDS),
        topics=frozenset(topics) if topics else None,
        until_ms=moment_ms(UNTIL, until) if until else None,
    )


def moment_param(title: str, description: str) -> Param:
    """A field for a time, which may be left empty."""
    return Param(
        None, type=["null", "string"], format="date-time", pattern=_MOMENT, title=title, description=description
    )


def moment_ms(name: str, text: str) -> int:
    """What such a field of this name was filled in with."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(f"{name}: expected a time such as 2026-01-31T12:00:00Z, not {text!r}") from None
    return _ms(found if found.tzinfo else found.replace(tzinfo=UTC))


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
