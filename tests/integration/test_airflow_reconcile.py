"""A twin compared and repaired in a real Airflow, with its forms, and whoever is told of it."""

from __future__ import annotations

import uuid

import pytest

from support.airflow_site import RUN_TIMEOUT_S, Site, dag_of
from support.mirroring import create_topic
from support.source_logs import fill

# Whichever test is first waits for the whole Airflow to start.
pytestmark = pytest.mark.timeout(600)


def test_a_difference_is_told_and_an_approved_plan_puts_it_right(airflow_site: Site) -> None:
    client, topic = airflow_site.client, f"to-asked-{uuid.uuid4().hex[:8]}"
    nyc, lon = (airflow_site.clusters[name].bootstrap_servers for name in ("nyc", "lon"))
    create_topic(nyc, topic, 1, {})
    fill(nyc, topic, range(10))
    with airflow_site.by_hand("asked"):
        airflow_site.ended(client.trigger(dag_of("mirror", "asked")))
    fill(lon, f"nyc.{topic}", ["not ours"])

    reconcile, repair = dag_of("reconcile", "asked"), dag_of("repair", "asked")
    with airflow_site.unpaused(reconcile):
        assert airflow_site.first_run(reconcile).state == "failed"
        found = client.await_run(client.trigger(reconcile, {"topics": topic, "full": True}), RUN_TIMEOUT_S)
    assert found.state == "failed"
    result = client.result(found, "reconcile")
    assert [(one["kind"], one["topic"], one["count"]) for one in result["differences"]] == [("foreign", topic, 1)]
    (notice, *_) = airflow_site.told.notices("different", "nyc->asked")
    assert (notice["over"], "1 foreign" in notice["title"]) == (False, True)

    done = client.await_run(client.trigger(repair, {"topics": topic, "without_asking": True}), RUN_TIMEOUT_S)
    assert done.state == "success", client.task_log(done, "repair")
    assert client.result(done, "repair")["recopied"] == [f"nyc.{topic}"]
    source, target = airflow_site.both(topic)
    assert target == source
