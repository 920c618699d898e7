"""A cluster moved in a real Airflow, from a form to its end, and a period copied by Airflow's own backfill."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pytest

from local.airflow_client import DagRun
from local.errors import LocalError
from support.airflow_site import PARSE_TIMEOUT_S, RUN_TIMEOUT_S, Site, dag_of
from support.groups import commit, committed
from support.migrating import stamped
from support.mirroring import create_topic
from support.source_logs import fill
from support.syncing import Hand

# Whichever test is first waits for the whole Airflow to start.
pytestmark = pytest.mark.timeout(900)


def named(flow: str) -> str:
    return f"to-{flow}-{uuid.uuid4().hex[:8]}"


def ended(site: Site, run: DagRun) -> tuple[DagRun, dict[str, str]]:
    """The run once it has ended, and what became of its tasks."""

    def states() -> dict[str, str]:
        path = f"/api/v2/dags/{run.dag_id}/dagRuns/{quote(run.run_id)}/taskInstances"
        return {row["task_id"]: row["state"] for row in site.client.call("GET", path)["task_instances"]}

    try:
        return site.client.await_run(run, RUN_TIMEOUT_S), states()
    except LocalError as late:
        raise AssertionError(f"{late} {states()}") from late


def test_a_cluster_is_moved_and_asks_before_the_cut_over_and_before_it_cleans_up(airflow_site: Site) -> None:
    client, topic, group = airflow_site.client, named("moved"), named("moved")
    nyc, lon = (airflow_site.clusters[name].bootstrap_servers for name in ("nyc", "lon"))
    create_topic(nyc, topic, 2, {"retention.ms": "7200000"})
    for partition in range(2):
        fill(nyc, topic, range(300), partition)
    commit(nyc, group, topic, {0: 30, 1: 300})
    dag_id = dag_of("migrate", "moved")
    client.await_dag(dag_id, PARSE_TIMEOUT_S)

    form = {"throttle": 20, "priority": [".*-moved-.*"], "blackouts": None, "without_asking": False}
    first = client.trigger(dag_id, form)
    airflow_site.say(first, "approve", "Reject")
    declined, after = ended(airflow_site, first)
    held = Hand(lon).overrides(f"nyc.{topic}")["retention.ms"]
    fill(nyc, topic, range(300, 310))

    second = client.trigger(dag_id, {})
    airflow_site.say(second, "approve", "Approve")
    airflow_site.say(second, "approve_clean_up", "Approve")
    moved, tasks = ended(airflow_site, second)

    assert declined.state == "success", (after, client.task_log(first, "clean_up"))
    behind = ("cut_over", "offer", "approve_clean_up", "clean_up")
    assert {after[task] for task in behind} == {"skipped"}
    copied = client.result(first, "backfill")
    assert (copied["records"], copied["flow"]) == (600, "nyc->moved")
    progress = client.result(first, "backfill", "progress")
    assert progress["records"] == progress["all_records"] == 600
    assert held == "-1"
    assert moved.state == "success", tasks
    assert client.result(second, "backfill")["records"] == 0
    source, target = airflow_site.both(topic)
    assert target == source
    assert committed(lon, group, f"nyc.{topic}") == {0: 30, 1: 300}
    assert Hand(lon).overrides(f"nyc.{topic}")["retention.ms"] == "7200000"
    assert not [name for name in Hand(lon).topics() if name.startswith("twinlog.nyc.moved.")]
    done = client.result(second, "clean_up")
    assert any("twinlog.nyc.moved." in line for line in done["removed"])
    assert "was approved by" in Path(done["report"].removeprefix("file://")).read_text()
    told = airflow_site.told.notices("decision", "nyc->moved")
    assert list(dict.fromkeys(notice["title"] for notice in told)) == [
        "Cut nyc->moved over to moved?",
        "Remove what Twinlog keeps of nyc->moved?",
    ]


def test_airflow_s_backfill_of_a_period_copies_that_period(airflow_site: Site) -> None:
    client, nyc = airflow_site.client, airflow_site.clusters["nyc"].bootstrap_servers
    with airflow_site.by_hand("period") as dag_id:
        topic, before = named("period"), {run.run_id for run in client.runs(dag_id)}
        create_topic(nyc, topic, 1, {"retention.ms": "-1"})
        years = range(2021, 2026)
        for year in years:
            stamped(nyc, topic, [year], int(datetime(year, 6, 1, tzinfo=UTC).timestamp() * 1000))

        client.backfill(dag_id, "2022-01-01T00:00:00Z", "2023-12-31T00:00:00Z")
        made = airflow_site.runs_beside(dag_id, before, 2)
        runs = [airflow_site.ended(run) for run in made]
        _, target = airflow_site.both(topic)

        assert [int(client.result(run, "record")["records"]) for run in runs] == [1, 1]
        assert [int(record.value) for record in target[0]] == [2022, 2023]
        # Whoever runs it as usual goes on behind the period.
        airflow_site.ended(client.trigger(dag_id))
        _, target = airflow_site.both(topic)
        assert [int(record.value) for record in target[0]] == list(years)[1:]
