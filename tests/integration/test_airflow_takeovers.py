"""Failover and switchover from Airflow's forms: a plan, somebody's no or yes, its steps, and the DAG that is called."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

import pytest

from local.airflow_client import DagRun
from support.airflow_site import PARSE_TIMEOUT_S, RUN_TIMEOUT_S, Site, dag_of
from support.groups import commit, committed, read
from support.mirroring import create_topic
from support.source_logs import fill
from twinlog.cluster.copy_order import carry_out_here
from twinlog.intake.topology_file import load
from twinlog.model.flow_state import State
from twinlog.operations.flow_reach import FlowReach
from twinlog.operations.lease import flow_store
from twinlog.operations.mirror import Mirror

# Whichever test is first waits for the whole Airflow to start.
pytestmark = pytest.mark.timeout(600)


class Taken:
    """A flow of the site with a topic of ten records, all but two of them mirrored, of which a group has read three."""

    def __init__(self, site: Site, target: str) -> None:
        self.site = site
        self.name = f"nyc->{target}"
        self.topic = f"to-{target}-{uuid.uuid4().hex[:8]}"
        self.group = f"{self.topic}-readers"
        self.nyc, self.lon = (site.clusters[name].bootstrap_servers for name in ("nyc", "lon"))
        create_topic(self.nyc, self.topic, 1, {})
        fill(self.nyc, self.topic, range(8))
        commit(self.nyc, self.group, self.topic, {0: 3})
        topology = load(site.topology)
        self.reach = FlowReach(
            topology, topology.flow(self.name), lambda name: site.clusters[name[6:]].client_settings()
        )
        reach = self.reach
        mirrored = Mirror(topology, reach.flow, reach.ends(), reach.ledger()).run(carry_out_here, tasks=1)
        assert mirrored.failures == []
        fill(self.nyc, self.topic, ["eight", "nine"])

    @property
    def twin(self) -> str:
        return f"nyc.{self.topic}"

    def state(self) -> State:
        with self.reach.access("target").raw() as target:
            return target.run(flow_store(self.reach.flow, target).read()).state

    def triggered(self, verb: str, **form: Any) -> DagRun:
        dag_id = dag_of(verb, self.name.partition("->")[2])
        self.site.client.await_dag(dag_id, PARSE_TIMEOUT_S)
        return self.site.client.trigger(dag_id, form)

    def answered(self, run: DagRun, option: str) -> DagRun:
        """The run once it has ended, when somebody has said so to its question."""
        self.site.say(run, "approve", option)
        return self.site.client.await_run(run, RUN_TIMEOUT_S)


def test_a_failover_waits_for_a_yes_and_calls_the_dag_that_is_named(airflow_site: Site) -> None:
    client, flow = airflow_site.client, Taken(airflow_site, "taken")

    refused = flow.answered(flow.triggered("failover"), "Reject")
    assert client.task(refused, "failover")["state"] == "skipped"
    assert (flow.state(), committed(flow.lon, flow.group, flow.twin)) == (State.ACTIVE, {})

    run = flow.answered(flow.triggered("failover", groups=f"{flow.topic}.*"), "Approve")
    assert run.state == "success", client.task_log(run, "failover")
    plan, result = client.result(run, "plan"), client.result(run, "failover")
    assert [(row["group"], row["topic"], row["offset"], row["unread"]) for row in plan["plan"]] == [
        (flow.group, flow.twin, 3, 5)
    ]
    assert (plan["lost_records"], plan["topics"][flow.topic]) == (2, flow.twin)
    assert [step["step"] for step in result["done"]] == ["stop", "record", "groups", "promote", "announce"]
    assert (result["groups_moved"], result["failures"], result["approved_by"]) == (1, [], "admin")
    assert result["objectives"]["recovery_time"]["met"] is True
    assert result["objectives"]["recovery_point"]["wanted_s"] == 3600
    assert flow.state() is State.FAILED_OVER
    assert read(flow.lon, flow.group, flow.twin) == Counter({(0, str(number).encode()): 1 for number in range(3, 8)})

    (called,) = client.runs("move_dns")
    told = client.result(called, "told")
    assert (told["event"], told["flow"], told["active"]) == ("failed over", "nyc->taken", "taken")
    assert told["topics"][flow.topic] == flow.twin
    notices = airflow_site.told.notices("decision", "nyc->taken")
    assert {notice["title"] for notice in notices} == {"Fail nyc->taken over to taken?"}
    assert "Lost: 2 records" in notices[0]["text"]
    assert notices[0]["link"]
    (taken,) = airflow_site.told.notices("takeover", "nyc->taken")
    assert taken["title"].startswith("nyc->taken: taken has taken over from nyc: 1 groups are ready")


def test_a_switchover_copies_and_proves_on_spark_and_loses_nothing(airflow_site: Site) -> None:
    client, flow = airflow_site.client, Taken(airflow_site, "switched")

    run = client.await_run(flow.triggered("switchover", without_asking=True), RUN_TIMEOUT_S)

    assert run.state == "success", client.task_log(run, "switchover")
    result = client.result(run, "switchover")
    assert (result["lost_records"], result["approved_by"]) == (0, None)
    assert result["proof"].startswith("nyc->switched: equal: ")
    assert result["runs"] >= 1
    assert flow.state() is State.FAILED_OVER
    expected = [*(str(number) for number in range(3, 8)), "eight", "nine"]
    assert read(flow.lon, flow.group, flow.twin) == Counter({(0, value.encode()): 1 for value in expected})
