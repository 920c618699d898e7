"""What schedulers do to a flow when things go wrong: a task is killed amid its copying, and two of them run one."""

from __future__ import annotations

import os
import signal
import uuid

import pytest

from local.airflow_client import AirflowCallError, AirflowClient, DagRun, await_condition
from support.airflow_site import RUN_TIMEOUT_S, Site, dag_of
from support.mirroring import create_topic
from support.source_logs import fill

# Whichever test is first waits for the whole Airflow to start.
pytestmark = pytest.mark.timeout(900)


def test_a_task_that_is_killed_amid_its_copying_is_made_good_by_the_next_try(airflow_site: Site) -> None:
    client = airflow_site.client
    nyc = airflow_site.clusters["nyc"].bootstrap_servers
    topic = f"to-killed-{uuid.uuid4().hex[:8]}"
    create_topic(nyc, topic, 2, {})
    for partition in range(2):
        # A megabyte in small batches, which takes ten seconds at the flow's throttle.
        fill(nyc, topic, [f"{number} ".ljust(1_000, ".") for number in range(500)], partition, batch_num_messages=10)
    dag_id = dag_of("mirror", "killed")
    with airflow_site.unpaused(dag_id):
        (run,) = await_condition(lambda: client.runs(dag_id)[:1], RUN_TIMEOUT_S, "a run")
        at_kill = await_condition(lambda: _copied(client, run), RUN_TIMEOUT_S, "the first commit")
        killed = client.task(run, "copy")
        os.kill(killed["pid"], signal.SIGKILL)
        airflow_site.ended(run)
    assert 0 < at_kill < 1_000, "it was killed amid its work"
    again = client.task(run, "copy")
    assert (killed["try_number"], again["try_number"]) == (1, 2)
    assert again["pid"] != killed["pid"]
    source, target = airflow_site.both(topic)
    assert target == source
    # What the first try had committed is of this run too.
    assert client.result(run, "record")["records"] == 1_000


def _copied(client: AirflowClient, run: DagRun) -> int:
    """How many records the run says to have copied, while it does."""
    try:
        return int(client.result(run, "copy", "progress")["records"])
    except AirflowCallError as error:
        if error.status != 404:
            raise
        return 0
