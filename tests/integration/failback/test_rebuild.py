"""A returned cluster that has lost data: told from one that is intact, refused, and rebuilt from the target."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from local.kafka import KafkaClusters
from support.failing_back import (
    commit,
    committed,
    fail_back,
    fail_over,
    failback_of,
    new_name,
    numbered,
    plan_of,
    values_of,
    write,
)
from support.mirroring import Twins, create_topic, twins
from support.waiting import await_condition
from twinlog.cluster.copy_order import carry_out_here
from twinlog.model.failback import Mode
from twinlog.model.flow_state import State


def delete_topic(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([topic])[topic].result(30)
    await_condition(lambda: topic not in admin.list_topics(timeout=10).topics, f"{topic} to be gone")


def flow_of(kafka_pair: KafkaClusters, folder: Path, *topics: str, **settings: object) -> Twins:
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    return twins(nyc, lon, folder, topics, **settings)


@pytest.mark.parametrize("naming", ["prefixed", "identity"])
def test_everything_comes_home_twice(kafka_pair: KafkaClusters, tmp_path: Path, naming: str) -> None:
    topic = new_name()
    flow = flow_of(kafka_pair, tmp_path, topic, naming=naming)
    nyc, lon, twin = flow.source_servers, flow.target_servers, topic if naming == "identity" else flow.twin(topic)
    flow.create(topic, retention_ms="-1")
    group = new_name("billing")
    write(nyc, topic, numbered("a", 20))
    assert flow.mirror().failures == []
    write(nyc, topic, ["lost"])
    whole = numbered("a", 20)

    for round_ in ("b", "c"):
        fail_over(flow)
        write(lon, twin, numbered(round_, 5))
        whole += numbered(round_, 5)
        commit(lon, group, twin, len(whole) + (1 if round_ == "b" else 2) - 2)
        plan = plan_of(flow, Mode.REBUILD)
        assert list(plan.delete) == [topic]
        assert any(step.startswith("DELETED") for step in plan.sentences)
        result = fail_back(flow, Mode.REBUILD)
        assert result.figures["came_home"] == len(whole)
        assert values_of(nyc, topic) == values_of(lon, twin) == whole
        assert committed(nyc, group, topic) == len(whole) - 2, f"it goes on with {whole[-2]}"

        # The first direction goes on; nothing of what came home is mirrored again.
        write(nyc, topic, [f"after {round_}"])
        run = flow.mirror()
        assert (run.failures, run.recorded.records) == ([], 1)
        whole.append(f"after {round_}")
        assert values_of(lon, twin) == whole


def test_topics_that_were_made_anew_cut_or_lost_are_named_and_only_they_are_rebuilt(
    kafka_pair: KafkaClusters, tmp_path: Path
) -> None:
    whole, anew, gone = new_name("whole"), new_name("anew"), new_name("gone")
    flow = flow_of(kafka_pair, tmp_path, whole, anew, gone)
    nyc, lon = flow.source_servers, flow.target_servers
    for topic in (whole, anew, gone):
        flow.create(topic)
        write(nyc, topic, numbered("a", 5))
    assert flow.mirror().failures == []
    write(nyc, whole, ["stranded"])
    fail_over(flow)
    for topic in (anew, gone):
        delete_topic(nyc, topic)
    create_topic(nyc, anew, 1, {})
    write(nyc, anew, numbered("other", 9))
    for topic in (whole, anew, gone):
        write(lon, flow.twin(topic), ["b"])

    plan = plan_of(flow)
    assert any(f"{anew}-0 was deleted and created again" in problem for problem in plan.refused)
    assert any(f"{gone}-0 is not there" in problem for problem in plan.refused)
    assert not any(whole in problem for problem in plan.refused)
    refused = failback_of(flow).carry_out(plan, carry_out_here, tasks=1)
    assert refused.failure is not None
    assert flow.record().state is State.FAILED_OVER

    result = fail_back(flow, rebuild_damaged=True)
    assert result.figures["stranded_left"] == 1
    assert list(result.plan.delete) == [anew]
    assert values_of(nyc, whole) == [*numbered("a", 5), "stranded", "b"]
    assert values_of(nyc, anew) == values_of(nyc, gone) == [*numbered("a", 5), "b"]
    assert flow.mirror().recorded.records == 0
    assert values_of(lon, flow.twin(anew)) == [*numbered("a", 5), "b"]
