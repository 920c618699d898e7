"""The flows' DAGs and the Mirroring page's routes in a real Airflow, on real clusters."""

from __future__ import annotations

import json
import re
import stat
import urllib.error
import urllib.request
from typing import Any

import pytest
import yaml

from local.airflow_client import AirflowCallError, await_condition
from support.airflow_site import GONE_DAG, GOOD_DAG, PARSE_TIMEOUT_S, RUN_TIMEOUT_S, Site

# Whichever test is first waits for the whole Airflow to start.
pytestmark = pytest.mark.timeout(600)


def test_the_dag_folder_has_no_import_errors(airflow_site: Site) -> None:
    assert airflow_site.client.import_errors() == []
    verbs = ("mirror", "control", "status", "sync", "heartbeat", "canary", "compact", "reconcile", "repair", "failback")
    verbs += ("drill", "failover", "switchover")
    # More verbs may come; those of a flow that wants everything.
    wanted = {f"{verb}__nyc_to_gone" for verb in verbs}

    def dags() -> list[dict[str, Any]]:
        path = "/api/v2/dags?tags=twinlog&dag_id_pattern=nyc_to_gone&limit=100"
        found: list[dict[str, Any]] = airflow_site.client.call("GET", path)["dags"]
        return found

    # Each file of the folder is parsed by itself.
    await_condition(lambda: wanted <= {dag["dag_id"] for dag in dags()}, PARSE_TIMEOUT_S, "all files to be parsed")
    assert airflow_site.client.import_errors() == []
    assert {owner for dag in dags() for owner in dag["owners"]} == {"twinlog"}


def test_a_run_reaches_both_clusters_and_shows_what_is_there(airflow_site: Site) -> None:
    client = airflow_site.client
    run = client.await_run(client.trigger(GOOD_DAG), RUN_TIMEOUT_S)
    log = client.task_log(run, "status")
    assert run.state == "success", log
    result = client.result(run, "status")
    assert result["flow"] == "nyc->lon"
    assert result["source"]["cluster"] == "nyc"
    assert result["source"]["reachable"] is True
    assert result["target"]["cluster"] == "lon"
    assert result["target"]["reachable"] is True
    assert isinstance(result["target"]["topics"], int)
    assert "nyc->lon" in log
    measured = airflow_site.measured
    reached = {"flow": "nyc_to_lon", "side": "source", "cluster": "nyc"}
    await_condition(lambda: measured.of("twinlog_cluster_reached", **reached) == 1, 10, "the metrics of the look")
    assert measured.errors("nyc_to_lon") == set()


def test_a_cluster_that_does_not_answer_fails_the_run_with_a_sentence_that_names_it(airflow_site: Site) -> None:
    client = airflow_site.client
    run = client.await_run(client.trigger(GONE_DAG), RUN_TIMEOUT_S)
    assert run.state == "failed"
    tries = client.task(run, "status")["try_number"]
    assert tries == 2, "unreachable is retriable, so it was tried again"
    log = client.task_log(run, "status", tries)
    assert "\nClusterUnreachableError: cluster gone (" in log
    # The result is there for a failed run too: it says which side it was.
    result = client.result(run, "status")
    assert result["source"]["reachable"] is True
    assert result["target"]["reachable"] is False
    assert airflow_site.measured.errors("nyc_to_gone") == {("status", "unreachable")}
    notices = airflow_site.told.notices("unreachable", "nyc->gone")
    assert {notice["title"] for notice in notices} == {"nyc->gone: gone could not be reached"}


def test_a_broken_topology_is_one_import_error_and_mending_it_is_enough(airflow_site: Site) -> None:
    client = airflow_site.client
    text = airflow_site.topology.read_text().replace("topics:", "topcs:", 1)
    with airflow_site.changed_topology(text):
        errors = await_condition(client.import_errors, PARSE_TIMEOUT_S, "an import error")
        assert len(errors) == 1
        assert re.search(rf"{re.escape(str(airflow_site.topology))}:\d+: ", errors[0])
        assert '"topics"' in errors[0]
        # The flows go on as the file was when it was last right, and the page says what is wrong with it.
        run = client.await_run(client.trigger(GOOD_DAG), RUN_TIMEOUT_S)
        assert run.state == "success", client.task_log(run, "status")
        page = client.call("GET", "/twinlog/api/flows")
        assert f"{airflow_site.topology}:" in page["problem"]
        assert "nyc->lon" in {row["flow"] for row in page["flows"]}
    assert client.call("GET", "/twinlog/api/flows")["problem"] is None


def test_a_flow_that_is_added_to_the_file_is_there_at_the_next_parse(airflow_site: Site) -> None:
    client = airflow_site.client
    described = yaml.safe_load(airflow_site.topology.read_text())
    described["clusters"]["fra"] = described["clusters"]["lon"]
    described["flows"]["nyc->fra"] = {"topics": ["none"]}
    assert not client.dag_exists("status__nyc_to_fra")
    with airflow_site.changed_topology(yaml.safe_dump(described, sort_keys=False)):
        client.await_dag("status__nyc_to_fra", PARSE_TIMEOUT_S)
        client.unpause("status__nyc_to_fra")
        run = client.await_run(client.trigger("status__nyc_to_fra"), RUN_TIMEOUT_S)
        assert run.state == "success", client.task_log(run, "status")


def test_the_page_is_closed_to_who_is_not_logged_in(airflow_site: Site) -> None:
    for path in ("/twinlog/", "/twinlog/api/flows", "/twinlog/mirroring.js", "/twinlog/mirroring.css"):
        with pytest.raises(AirflowCallError) as refused:
            airflow_site.client.call("GET", path, login=False)
        assert refused.value.status == 401, path
    for path in ("/twinlog/docs", "/twinlog/openapi.json"):
        with pytest.raises(AirflowCallError) as refused:
            airflow_site.client.call("GET", path)
        assert refused.value.status == 404, path


def test_a_forged_token_does_not_open_the_page(airflow_site: Site) -> None:
    request = urllib.request.Request(  # noqa: S310 - our own http address
        f"{airflow_site.url}/twinlog/api/flows", headers={"Authorization": "Bearer forged"}
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)  # noqa: S310 - as above
    assert refused.value.code in (401, 403)
    refused.value.close()


def test_the_page_lists_the_flows_with_their_last_run(airflow_site: Site) -> None:
    client = airflow_site.client
    run = client.await_run(client.trigger(GOOD_DAG), RUN_TIMEOUT_S)
    answer = client.call("GET", "/twinlog/api/flows")
    flows = {row["flow"]: row for row in answer["flows"]}
    assert {"nyc->lon", "nyc->gone"} < set(flows)
    row = flows["nyc->lon"]
    assert (row["source"], row["target"], row["naming"]) == ("nyc", "lon", "prefixed")
    assert row["last_run"]["run_id"] == run.run_id
    assert row["last_run"]["state"] == "success"
    assert row["last_run"]["result"]["target"]["reachable"] is True


def test_the_password_is_for_its_owner_only_and_in_no_log(airflow_site: Site) -> None:
    file = airflow_site.password_file
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (password,) = json.loads(file.read_text()).values()
    logs = [path for path in airflow_site.running.home.rglob("*.log") if path.is_file()]
    assert logs
    assert [path for path in logs if password in path.read_text(errors="replace")] == []
