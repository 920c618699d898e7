"""The way back in a real Airflow: a drill by its schedule, and a failback that somebody has to approve."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from local.airflow_client import DagRun
from support.airflow_site import PARSE_TIMEOUT_S, RUN_TIMEOUT_S, Site, dag_of
from support.failing_back import commit, committed, numbered, values_of, write
from support.mirroring import create_topic
from twinlog.cluster.copy_order import carry_out_here
from twinlog.intake.topology_file import load
from twinlog.model.flow_state import FlowRecord, State
from twinlog.operations.flow_reach import FlowReach
from twinlog.operations.lease import flow_store
from twinlog.operations.mirror import Mirror

# Whichever test is first waits for the whole Airflow to start.
pytestmark = pytest.mark.timeout(600)

FLOW = "nyc->returned"


def answered(site: Site, form: dict[str, Any], option: str) -> DagRun:
    """The run of the failback's form once it has ended, when somebody has said so to its question."""
    client, dag_id = site.client, dag_of("failback", "returned")
    client.await_dag(dag_id, PARSE_TIMEOUT_S)
    run = client.trigger(dag_id, form)
    site.say(run, "approve", option)
    return client.await_run(run, RUN_TIMEOUT_S)


def test_a_drill_and_a_failback_with_an_approved_plan(airflow_site: Site) -> None:
    client = airflow_site.client
    nyc, lon = (airflow_site.clusters[name].bootstrap_servers for name in ("nyc", "lon"))
    topic = f"to-returned-{uuid.uuid4().hex[:8]}"
    group, twin = f"{topic}-readers", f"nyc.{topic}"
    topology = load(airflow_site.topology)
    reach = FlowReach(topology, topology.flow(FLOW), lambda name: airflow_site.clusters[name[6:]].client_settings())

    def change(record: FlowRecord) -> FlowRecord:
        return record.moved_to(State.FAILED_OVER, FLOW)

    create_topic(nyc, topic, 1, {})
    write(nyc, topic, numbered("a", 8))
    commit(nyc, group, topic, 5)
    mirrored = Mirror(topology, reach.flow, reach.ends(), reach.ledger()).run(carry_out_here, tasks=1)
    assert mirrored.failures == []

    drill = dag_of("drill", "returned")
    client.await_dag(drill, PARSE_TIMEOUT_S)
    with airflow_site.unpaused(drill):
        run = airflow_site.first_run(drill)
    assert run.state == "success", client.task_log(run, "drill")
    rehearsed = client.result(run, "drill")
    assert (rehearsed["records"], rehearsed["compared"], rehearsed["fault_count"]) == (3, 3, 0)

    write(nyc, topic, ["lost0", "lost1"])
    with reach.access("target").raw() as target:
        target.run(flow_store(reach.flow, target).change(change))
    write(lon, twin, numbered("b", 3))
    commit(lon, group, twin, 10)  # a0 to a7, a marker, b0

    form = {"stranded": "topic"}
    refused = answered(airflow_site, form, "Reject")
    assert client.task(refused, "failback")["state"] == "skipped"
    assert values_of(nyc, topic) == [*numbered("a", 8), "lost0", "lost1"]

    run = answered(airflow_site, form, "Approve")
    assert run.state == "success", client.task_log(run, "failback")
    plan, result = client.result(run, "plan"), client.result(run, "failback")
    assert [row["key"] for row in plan["records"]] == ["lost0", "lost1"]
    assert (result["complete"], result["plan"], result["approved_by"]) == (True, plan["id"], "admin")
    figures = result["figures"]
    assert (figures["stranded_sent"], figures["came_home"], figures["verdict"]) == (2, 3, "equal")
    assert values_of(nyc, topic) == [*numbered("a", 8), "lost0", "lost1", *numbered("b", 3)]
    assert values_of(lon, f"{topic}.stranded") == ["lost0", "lost1"]
    assert committed(nyc, group, topic) == 11, "it goes on with b1"
    with reach.access("target").raw() as target:
        assert target.run(flow_store(reach.flow, target).read()).state is State.ACTIVE
