"""A DAG of somebody who waits for a topic to be mirrored. For tests of a real Airflow."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Asset, dag, get_current_context, task

TOPIC = Asset("kafka://lon/nyc.to-lon-waited-for")


@task
def look() -> dict[str, Any]:
    """Up to when everything is there."""
    events: Any = get_current_context()["triggering_asset_events"]
    return dict(events[TOPIC][-1].extra)


@dag(schedule=[TOPIC], catchup=False)
def waits_for_a_topic() -> None:
    look()


waits_for_a_topic()
