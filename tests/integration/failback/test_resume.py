"""Failback in mode resume on real clusters: the stranded, what was written on the target, groups, and once more."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from local.kafka import KafkaClusters
from support import takeovers
from support.failing_back import (
    commit,
    committed,
    fail_back,
    fail_over,
    named,
    new_name,
    numbered,
    plan_of,
    twin_of,
    values_of,
    write,
)
from support.groups import checkpoint, read
from support.mirroring import Twins, producer, twins
from support.reading import read_with_offsets
from twinlog.ledger.failbacks import Failbacks
from twinlog.model.failback import Stranded
from twinlog.model.flow_state import State

GROUPS = {"emit_checkpoints_enabled": True, "checkpoints_topic_replication_factor": 1}


def flow_of(kafka_pair: KafkaClusters, folder: Path, topic: str, **settings: object) -> Twins:
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    return twins(nyc, lon, folder, (topic,), **settings)


@pytest.mark.parametrize("naming", ["prefixed", "identity", pytest.param("custom", marks=pytest.mark.long)])
def test_the_classic_case_twice_with_both_sides_diverged(
    kafka_pair: KafkaClusters, tmp_path: Path, naming: str
) -> None:
    topic = new_name()
    group = new_name("billing")
    flow = flow_of(kafka_pair, tmp_path, topic, groups=(group,), **GROUPS, **named(naming))
    nyc, lon, twin = flow.source_servers, flow.target_servers, twin_of(flow, topic)
    flow.create(topic)
    write(nyc, topic, numbered("a", 9_998))
    assert flow.mirror().failures == []
    write(nyc, topic, numbered("lost", 2))
    commit(nyc, group, topic, 8_000)
    assert checkpoint(flow).failures == []

    over = takeovers.fail_over(flow)
    assert (over.failures, over.plan.lost_records) == ((), 2)
    assert read(lon, group, twin).total() == 1_998
    write(lon, twin, numbered("b", 10))
    assert read(lon, group, twin, 6).total() == 6
    plan = plan_of(flow)
    assert plan.refused == ()
    assert plan.stranded_records == 2
    assert [(one.topic, one.partition, one.offset, one.key) for one in plan.records] == [
        (topic, 0, 9_998, "lost0"),
        (topic, 0, 9_999, "lost1"),
    ]
    assert flow.record().state is State.FAILED_OVER, "a plan changes nothing"

    result = fail_back(flow)
    assert result.figures["stranded_records"] == 2
    assert result.figures["stranded_left"] == 2
    assert result.figures["came_home"] == 10
    assert result.figures["compared_onward"] >= 9_998
    assert result.figures["compared_home"] >= 10
    exported = Failbacks(flow.ledger).exported(result.plan.id)
    assert exported.column("value").to_pylist() == [b"lost0", b"lost1"]
    everything = [*numbered("a", 9_998), "lost0", "lost1", *numbered("b", 10)]
    assert values_of(nyc, topic) == everything
    assert values_of(lon, twin) == [*numbered("a", 9_998), *numbered("b", 10)]
    assert committed(nyc, group, topic) == 10_006, "it goes on with b6"
    assert flow.record().state is State.ACTIVE

    # The first direction resumes, and what came home does not come back.
    write(nyc, topic, numbered("c", 5))
    run = flow.mirror()
    assert (run.failures, run.recorded.records) == ([], 5)
    assert values_of(lon, twin) == [*numbered("a", 9_998), *numbered("b", 10), *numbered("c", 5)]

    # Once more.
    write(nyc, topic, ["lost2"])
    fail_over(flow)
    write(lon, twin, numbered("d", 3))
    again = fail_back(flow)
    assert (again.figures["stranded_left"], again.figures["came_home"]) == (1, 3)
    assert values_of(nyc, topic) == [*everything, *numbered("c", 5), "lost2", *numbered("d", 3)]
    write(nyc, topic, ["e"])
    assert flow.mirror().recorded.records == 1
    assert values_of(lon, twin)[-4:] == ["d0", "d1", "d2", "e"]


@pytest.mark.parametrize("stranded", [Stranded.TOPIC, Stranded.APPEND])
def test_stranded_records_are_sent_to_their_own_topic_or_appended(
    kafka_pair: KafkaClusters, tmp_path: Path, stranded: Stranded
) -> None:
    topic = new_name()
    flow = flow_of(kafka_pair, tmp_path, topic)
    nyc, lon, twin = flow.source_servers, flow.target_servers, flow.twin(topic)
    flow.create(topic, partitions=2)
    for partition in (0, 1):
        write(nyc, topic, numbered(f"a{partition}.", 3), partition)
    assert flow.mirror().failures == []
    write(nyc, topic, ["s0", "s1"], 1)
    fail_over(flow)
    write(lon, twin, ["b0", "b1"], 1)

    plan = plan_of(flow, stranded=stranded)
    result = fail_back(flow, stranded=stranded)
    assert values_of(nyc, topic, 1) == [*numbered("a1.", 3), "s0", "s1", "b0", "b1"]
    if stranded is Stranded.TOPIC:
        assert plan.order_changes == []
        assert values_of(lon, f"{topic}.stranded", 1) == ["s0", "s1"]
        assert values_of(lon, f"{topic}.stranded", 0) == []
        assert values_of(lon, twin, 1) == [*numbered("a1.", 3), "b0", "b1"]
        assert result.figures["stranded_sent"] == 2
    else:
        (change,) = plan.order_changes
        assert (change["topic"], change["partition"], change["source_start"], change["source_end"]) == (topic, 1, 3, 5)
        assert any("the order changes" in step for step in plan.sentences)
        assert values_of(lon, twin, 1) == [*numbered("a1.", 3), "b0", "b1", "s0", "s1"]
        assert result.figures["appended"] == 2
    assert flow.mirror().recorded.records == 0


def test_stranded_records_of_long_ago_stay_in_their_topic(kafka_pair: KafkaClusters, tmp_path: Path) -> None:
    topic = new_name()
    flow = flow_of(kafka_pair, tmp_path, topic)
    flow.create(topic, retention_ms="-1", max_message_bytes="2000000")
    write(flow.source_servers, topic, ["a"])
    assert flow.mirror().failures == []
    writer = producer(flow.source_servers, message_max_bytes=2_000_000)
    writer.produce(topic, b"x" * 1_500_000, b"old", timestamp=1_000)
    assert writer.flush(30) == 0
    fail_over(flow)
    fail_back(flow, stranded=Stranded.TOPIC)
    admin, kept = AdminClient({"bootstrap.servers": flow.target_servers}), ConfigResource("topic", f"{topic}.stranded")
    settings = admin.describe_configs([kept])[kept].result(30)
    wanted = {"retention.ms": "-1", "retention.bytes": "-1", "max.message.bytes": "2000000", "cleanup.policy": "delete"}
    assert {name: settings[name].value for name in wanted} == wanted
    (seen,) = read_with_offsets(flow.target_servers, f"{topic}.stranded")[0].values()
    assert (seen.key, seen.timestamp[1]) == (b"old", 1_000)
