"""Mirror runs in a real Airflow: by schedule, by a form, by another Spark, and who is told."""

from __future__ import annotations

import threading
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from local.airflow_client import AirflowCallError, DagRun, await_condition
from support.airflow_site import RUN_TIMEOUT_S, Site, dag_of
from support.mirroring import create_topic, producer
from support.source_logs import fill

# Whichever test is first waits for the whole Airflow to start.
pytestmark = pytest.mark.timeout(600)


def named(flow: str) -> str:
    return f"to-{flow}-{uuid.uuid4().hex[:8]}"


def test_scheduled_runs_mirror_while_data_is_produced(airflow_site: Site) -> None:
    client, topic = airflow_site.client, named("lon")
    nyc = airflow_site.clusters["nyc"].bootstrap_servers
    create_topic(nyc, topic, 2, {})
    enough = threading.Event()

    def produce() -> int:
        sender, number = producer(nyc), 0
        while not enough.wait(0.02):
            sender.produce(topic, f"record {number}", partition=number % 2)
            number += 1
        sender.flush()
        return number

    dag_id = dag_of("mirror", "lon")
    with ThreadPoolExecutor(1) as pool, airflow_site.unpaused(dag_id):
        producing = pool.submit(produce)
        try:
            copied = await_condition(lambda: _runs_with_records(airflow_site, dag_id)[1:], RUN_TIMEOUT_S, "two runs")
        finally:
            enough.set()
        sent = producing.result()
        await_condition(lambda: _records(airflow_site, dag_id) == sent, RUN_TIMEOUT_S, "all of it")
    source, target = airflow_site.both(topic)
    assert target == source
    assert sum(map(len, target.values())) == sent

    run = copied[0]
    result = client.result(run, "copy")
    assert (result["flow"], result["skipped"], result["findings"]) == ("nyc->lon", None, [])
    progress = client.result(run, "copy", "progress")
    assert progress["records"] == progress["all_records"] > 0
    page = client.links(run, "copy")["Spark"]
    assert page is not None
    with urllib.request.urlopen(page) as answer:  # noqa: S310 - of our own Spark
        assert b"Spark Connect" in answer.read()
    # Whoever waits for the topic is told up to when it is there.
    events = client.asset_events(run)
    assert set(events) == {f"kafka://lon/nyc.{topic}", "twinlog://lon/ledger/nyc"}
    told = events[f"kafka://lon/nyc.{topic}"]
    began = datetime.fromisoformat(client.task(run, "copy")["start_date"])
    recorded = datetime.fromisoformat(client.task(run, "record")["start_date"])
    assert began <= datetime.fromisoformat(told["mirrored_until"]) <= recorded
    assert (told["flow"], told["run"]) == ("nyc->lon", result["run"])
    assert events["twinlog://lon/ledger/nyc"]["records"] == client.result(run, "record")["records"]


def test_another_dag_runs_when_what_it_waits_for_is_mirrored(airflow_site: Site) -> None:
    client = airflow_site.client
    nyc = airflow_site.clusters["nyc"].bootstrap_servers
    client.await_dag("waits_for_a_topic", RUN_TIMEOUT_S)
    client.unpause("waits_for_a_topic")
    create_topic(nyc, "to-lon-waited-for", 1, {})
    fill(nyc, "to-lon-waited-for", range(3))
    written = datetime.now(UTC)
    with airflow_site.unpaused(dag_of("mirror", "lon")):
        run = airflow_site.first_run("waits_for_a_topic")
        told = client.result(airflow_site.ended(run), "look")
    assert told["flow"] == "nyc->lon"
    assert datetime.fromisoformat(told["mirrored_until"]) > written


def _runs_with_records(site: Site, dag_id: str) -> list[DagRun]:
    """Those that have recorded something, the oldest first."""
    done = [run for run in reversed(site.client.runs(dag_id)) if run.state == "success"]
    return [run for run in done if _recorded(site, run)]


def _records(site: Site, dag_id: str) -> int:
    return sum(_recorded(site, run) for run in site.client.runs(dag_id) if run.state == "success")


def _recorded(site: Site, run: DagRun) -> int:
    if site.client.task(run, "record")["state"] != "success":
        return 0
    return int(site.client.result(run, "record")["records"])


def test_a_form_bounds_a_run_by_bytes_topics_and_time(airflow_site: Site) -> None:
    client = airflow_site.client
    nyc = airflow_site.clusters["nyc"].bootstrap_servers
    with airflow_site.by_hand("asked") as dag_id:
        first, second = named("asked"), named("asked")
        for topic in (first, second):
            create_topic(nyc, topic, 1, {})
        noon = 1_700_000_000_000
        sender = producer(nyc)
        for minute in range(4):
            # One after the other, so that each is a batch of its own: a batch goes whole.
            for topic in (first, second):
                sender.produce(topic, f"at {minute}", timestamp=noon + minute * 60_000)
                sender.flush()

        def run(**form: Any) -> int:
            made = airflow_site.ended(client.trigger(dag_id, form))
            return int(client.result(made, "record")["records"])

        until = datetime.fromtimestamp(noon / 1000 + 60, UTC).isoformat()
        assert run(topics=[first], until=until) == 1
        assert run(topics=[second], max_bytes=1) == 1
        left = client.result(client.runs(dag_id)[0], "copy")
        assert (left["left_records"], left["mirrored_until_ms"]) == (3, None)
        assert run() == 6
        for topic in (first, second):
            source, target = airflow_site.both(topic)
            assert target == source
        # The gauges come by themselves, a moment after the task has ended.
        measured, flow = airflow_site.measured, "nyc_to_asked"
        await_condition(lambda: measured.of("twinlog_run_records", flow=flow) == 6, 10, "the run's figures")
        assert measured.of("twinlog_findings", flow=flow, kind="expired") == 0
        assert {"twinlog_run_seconds", "twinlog_copier_batch_bytes_mean", "twinlog_copier_time_ratio"} < measured.names(
            flow=flow
        )
        assert airflow_site.ended(client.trigger(dag_id)).state == "success"
        await_condition(lambda: measured.of("twinlog_run_records", flow=flow) == 0, 10, "those of a run with nothing")

        def errors() -> set[tuple[str, str]]:
            # Other tests may have put a difference into the flow and had it found.
            return {(step, kind) for step, kind in measured.errors(flow) if step != "reconcile"}

        assert errors() == set()

        for wrong in ({"max_bytes": 0}, {"topics": "orders"}, {"until": "noon"}, {"max_seconds": 10**9}):
            with pytest.raises(AirflowCallError) as refused:
                client.trigger(dag_id, wrong)
            assert refused.value.status == 400, wrong
        unknown = client.await_run(client.trigger(dag_id, {"topics": ["nothing"]}), RUN_TIMEOUT_S)
        assert unknown.state == "failed"
        assert 'shows no topic "nothing"' in client.task_log(unknown, "plan")
        assert client.task(unknown, "plan")["try_number"] == 1, "what people wrote is not tried again"
        await_condition(lambda: errors() == {("plan", "configuration")}, 10, "the kind of the error")
        notices = airflow_site.told.notices("failed", "nyc->asked")
        (notice,) = [one for one in notices if one["title"] == f"nyc->asked: plan of {dag_id} failed"]
        assert notice["link"].startswith(f"{airflow_site.url}/dags/{dag_id}/runs/")


def test_the_same_job_is_submitted_where_the_connection_says_so(airflow_site: Site) -> None:
    client = airflow_site.client
    nyc = airflow_site.clusters["nyc"].bootstrap_servers
    topic = named("submitted")
    create_topic(nyc, topic, 2, {})
    fill(nyc, topic, range(50))
    dag_id = dag_of("mirror", "submitted")
    with airflow_site.unpaused(dag_id):
        run = airflow_site.ended(airflow_site.first_run(dag_id))
    source, target = airflow_site.both(topic)
    assert target == source
    log = client.task_log(run, "copy")
    assert "Spark-Submit cmd: " in log
    assert "copy_ranges.py" in log
    assert client.result(run, "record")["records"] == 50
    assert client.task(run, "copy")["pool"] == "one_at_a_time"


def test_who_is_to_be_told_is_told_that_a_flow_lags(airflow_site: Site) -> None:
    client, told = airflow_site.client, airflow_site.told
    nyc = airflow_site.clusters["nyc"].bootstrap_servers
    with airflow_site.by_hand("asked"), airflow_site.unpaused(dag_of("status", "asked")):
        topic = named("asked")
        create_topic(nyc, topic, 1, {})
        fill(nyc, topic, range(3))
        late = client.await_run(client.trigger(dag_of("status", "asked")), RUN_TIMEOUT_S)
        assert late.state == "failed"
        assert "ObjectiveMissedError: " in client.task_log(late, "status")
        assert client.result(late, "status")["told"] == ["lag"]
        notice = told.notices("lag", "nyc->asked")[-1]
        assert notice["title"].startswith("nyc->asked: lag is beyond what is wanted: ")
        assert (notice["over"], notice["details"]["wanted_s"]) == (False, 1.0)
        assert f"/dags/{late.dag_id}/runs/" in notice["link"]

        airflow_site.by_hand_ended(dag_of("mirror", "asked"))
        in_time = airflow_site.by_hand_ended(dag_of("status", "asked"))
        assert client.result(in_time, "status")["told"] == []
