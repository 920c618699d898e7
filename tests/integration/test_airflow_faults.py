"""What schedulers do to a flow when things go wrong: a worker is lost amid its copying, a part can't be copied, two of
them run one flow, and one of them did not hear that it is paused."""

from __future__ import annotations

import os
import signal
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.airflow_client import AirflowCallError, AirflowClient, DagRun, await_condition
from support.airflow_site import PARSE_TIMEOUT_S, RUN_TIMEOUT_S, Site, another_airflow, dag_of
from support.mirroring import create_topic
from support.source_logs import delete_records, fill

# Whichever test is first waits for the whole Airflow to start.
pytestmark = pytest.mark.timeout(900)


def topic_to(site: Site, target: str, records: int = 0) -> str:
    """A topic of two partitions that the flow to `target` mirrors. Its records are of a kilobyte and in small batches:
    a thousand take ten seconds at the throttle of the flows `slow` and `shared`."""
    nyc = site.clusters["nyc"].bootstrap_servers
    topic = f"to-{target}-{uuid.uuid4().hex[:8]}"
    create_topic(nyc, topic, 2, {})
    if records:
        for partition in range(2):
            values = [f"{number} ".ljust(1_000, ".") for number in range(records // 2)]
            fill(nyc, topic, values, partition, batch_num_messages=10)
    return topic


@pytest.mark.parametrize("lost", [pytest.param("task", marks=pytest.mark.long), "worker"])
def test_what_is_lost_amid_its_copying_is_made_good_by_the_next_try(airflow_site: Site, lost: str) -> None:
    client = airflow_site.client
    with airflow_site.by_hand("slow") as dag_id:
        topic = topic_to(airflow_site, "slow", 800)
        run = client.trigger(dag_id)
        at_kill = await_condition(lambda: _copied(client, run), RUN_TIMEOUT_S, "the first commit")
        killed = client.task(run, "copy")
        # A worker watches over the process of its task; without it nobody tells the scheduler anything.
        for pid in [_parent(killed["pid"])] * (lost == "worker") + [killed["pid"]]:
            os.kill(pid, signal.SIGKILL)
        airflow_site.ended(run)
    assert 0 < at_kill < 800, "it was killed amid its work"
    again = client.task(run, "copy")
    assert (killed["try_number"], again["try_number"]) == (1, 2)
    assert again["pid"] != killed["pid"]
    source, target = airflow_site.both(topic)
    assert target == source
    # What the first try had committed is of this run too.
    assert client.result(run, "record")["records"] == 800


def test_who_drains_a_flow_stops_it_for_a_scheduler_that_did_not_hear_of_it(airflow_site: Site) -> None:
    client = airflow_site.client

    def ask(action: str) -> Any:
        return client.result(airflow_site.by_hand_ended(dag_of("control", "slow"), {"action": action}), "control")

    with airflow_site.by_hand("slow") as dag_id:
        topic = topic_to(airflow_site, "slow", 2_000)
        run = client.trigger(dag_id)
        await_condition(lambda: _copied(client, run), RUN_TIMEOUT_S, "the first commit")
        try:
            drained = ask("drain")
            airflow_site.ended(run)
            copied = sum(map(len, airflow_site.both(topic)[1].values()))
            rested = airflow_site.by_hand_ended(dag_id)
        finally:
            resumed = ask("resume")
        rest = airflow_site.by_hand_ended(dag_id)
    assert (drained["before"], drained["state"], resumed["state"]) == ("active", "paused", "active")
    assert drained["run"] == client.result(run, "plan")["run"]
    assert 0 < copied < 2_000
    assert client.result(run, "record")["records"] == copied, "it has ended, and what it had committed is there"

    assert client.result(rested, "plan")["refused"] == "nyc->slow is paused; nothing was copied"
    assert {task: client.task(rested, task)["state"] for task in client.task_ids(rested)} == {
        "plan": "success",
        "copy": "skipped",
        "record": "skipped",
        "checkpoint": "skipped",
        "end": "skipped",
    }

    assert client.result(rest, "record")["records"] == 2_000 - copied
    source, target = airflow_site.both(topic)
    assert target == source


def test_what_cannot_be_copied_fails_the_run_and_holds_up_nothing_else(airflow_site: Site) -> None:
    client = airflow_site.client
    nyc = airflow_site.clusters["nyc"].bootstrap_servers
    with airflow_site.by_hand("slow") as dag_id:
        topic, other = (topic_to(airflow_site, "slow") for _ in range(2))
        fill(nyc, topic, range(10))
        airflow_site.by_hand_ended(dag_id)
        fill(nyc, topic, range(10, 20))
        delete_records(nyc, topic, 16)
        fill(nyc, other, range(5))
        run = client.await_run(client.trigger(dag_id), RUN_TIMEOUT_S)
    assert run.state == "failed"
    assert {task: client.task(run, task)["state"] for task in client.task_ids(run)} == {
        "plan": "success",
        "copy": "failed",
        "record": "success",
        "checkpoint": "success",
        "end": "upstream_failed",
    }
    log = client.task_log(run, "copy")
    assert "CopyIncompleteError: " in log
    assert "offsets 10 to 15 were removed by retention before they were copied" in log
    source, target = airflow_site.both(other)
    assert target == source
    assert client.result(run, "checkpoint")["flow"] == "nyc->slow"


def test_two_airflows_run_one_flow_and_do_it_no_harm(airflow_site: Site, tmp_path: Path) -> None:
    home, dag_id = airflow_site, dag_of("mirror", "shared")
    nyc = home.clusters["nyc"].bootstrap_servers
    with another_airflow(home, tmp_path) as away:
        away.client.await_dag(dag_id, PARSE_TIMEOUT_S)
        with away.unpaused(dag_id):
            with home.unpaused(dag_id):
                topic = topic_to(home, "shared", 1_000)
                refused = await_condition(lambda: _refused(home) or _refused(away), RUN_TIMEOUT_S, "one to be late")
                await_condition(
                    lambda: _recorded(home) + _recorded(away) == 1_000, RUN_TIMEOUT_S, "the two of them to copy all"
                )
            # Each run that was late has ended well, with one line and nothing done.
            for sentence in refused:
                assert sentence.startswith("run ")
                assert sentence.endswith(" holds nyc->shared; nothing was copied")
                assert "\n" not in sentence
            source, target = home.both(topic)
            assert target == source

            # One of them is gone; the other goes on.
            fill(nyc, topic, range(10))
            await_condition(lambda: _recorded(home) + _recorded(away) == 1_010, RUN_TIMEOUT_S, "the other to go on")
            source, target = home.both(topic)
            assert target == source

            # And where it describes the flow otherwise, it says so and leaves it alone.
            described = yaml.safe_load(away.topology.read_text())
            described["flows"]["nyc->shared"]["topics"].append("and-another")
            with away.changed_topology(yaml.safe_dump(described, sort_keys=False)):
                otherwise = await_condition(
                    lambda: [one for one in _refused(away) if "otherwise" in one], RUN_TIMEOUT_S, "it to say so"
                )
    assert otherwise[0].startswith("nyc->shared runs by version 0 of the topology, as site home has it; site away ")
    assert otherwise[0].endswith("; nothing was copied")


def _copied(client: AirflowClient, run: DagRun) -> int:
    """How many records the run says to have copied, while it does."""
    return int((_result(client, run, "copy", "progress") or {}).get("records", 0))


def _refused(site: Site) -> list[str]:
    """What the runs of the shared flow said that ended well without having done anything, since they may not."""
    client = site.client
    done = [run for run in client.runs(dag_of("mirror", "shared")) if run.state == "success"]
    plans = [_result(client, run, "plan") or {} for run in done]
    return [plan["refused"] for plan in plans if plan.get("refused")]


def _recorded(site: Site) -> int:
    """How many records the runs of the shared flow have recorded as theirs, as those are told who wait for them."""
    path = f"/api/v2/assets/events?source_dag_id={dag_of('mirror', 'shared')}&limit=100"
    events = site.client.call("GET", path)["asset_events"]
    return sum(row["extra"]["records"] for row in events if row["uri"] == "twinlog://shared/ledger/nyc")


def _result(client: AirflowClient, run: DagRun, task: str, key: str = "return_value") -> Any:
    """What the task has left, if it has."""
    try:
        return client.result(run, task, key)
    except AirflowCallError as error:
        if error.status != 404:
            raise
    return None


def _parent(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])
