"""A returned cluster that has lost data: told from one that is intact, refused, and rebuilt from the target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource

from local.kafka import KafkaClusters
from support.failing_back import (
    commit,
    committed,
    delete_topic,
    fail_back,
    fail_over,
    failback_of,
    named,
    new_name,
    numbered,
    plan_of,
    twin_of,
    values_of,
    write,
)
from support.mirroring import Twins, create_topic, twins
from support.reading import read_with_offsets
from twinlog.cluster.copy_order import carry_out_here
from twinlog.model.failback import Mode
from twinlog.model.flow_state import State
from twinlog.model.lanes import journal_topic, state_topic
from twinlog.model.made import made_topic
from twinlog.operations import failback_topics


def flow_of(kafka_pair: KafkaClusters, folder: Path, *topics: str, **settings: object) -> Twins:
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    return twins(nyc, lon, folder, topics, **settings)


@pytest.mark.parametrize("naming", ["prefixed", pytest.param("identity", marks=pytest.mark.long), "custom"])
def test_everything_comes_home_twice(kafka_pair: KafkaClusters, tmp_path: Path, naming: str) -> None:
    topic = new_name()
    flow = flow_of(kafka_pair, tmp_path, topic, **named(naming))
    nyc, lon, twin = flow.source_servers, flow.target_servers, twin_of(flow, topic)
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


def test_a_cluster_that_has_lost_everything_is_filled_again_after_an_earlier_failback(
    kafka_pair: KafkaClusters, tmp_path: Path
) -> None:
    topic, group = new_name(), new_name("billing")
    flow = flow_of(kafka_pair, tmp_path, topic)
    nyc, lon, twin = flow.source_servers, flow.target_servers, flow.twin(topic)
    flow.create(topic)
    write(nyc, topic, numbered("a", 3))
    assert flow.mirror().failures == []
    fail_over(flow)
    write(lon, twin, ["b"])
    fail_back(flow)

    here, there = flow.flow.source, flow.flow.target
    for gone in (topic, *(name(there, here) for name in (journal_topic, state_topic, made_topic))):
        delete_topic(nyc, gone)
    fail_over(flow)
    write(lon, twin, ["c0", "c1"])
    whole = [*numbered("a", 3), "b", "c0", "c1"]
    commit(lon, group, twin, 6)  # a0 to a2, a marker, b, c0: it goes on with c1
    plan = plan_of(flow)
    assert any("is not there" in problem for problem in plan.refused)
    result = fail_back(flow, Mode.REBUILD)
    assert result.figures["came_home"] == len(whole)
    assert values_of(nyc, topic) == values_of(lon, twin) == whole
    at = {seen.value: offset for offset, seen in read_with_offsets(nyc, topic)[0].items()}
    assert committed(nyc, group, topic) == at[b"c1"]
    write(nyc, topic, ["d"])
    assert flow.mirror().recorded.records == 1

    # And once more, with the new journal.
    fail_over(flow)
    write(lon, twin, ["e"])
    fail_back(flow)
    assert values_of(nyc, topic) == values_of(lon, twin) == [*whole, "d", "e"]


def test_topics_made_anew_have_the_settings_and_partitions_that_they_had(
    kafka_pair: KafkaClusters, tmp_path: Path
) -> None:
    topic = new_name()
    flow = flow_of(kafka_pair, tmp_path, topic)
    nyc, lon = flow.source_servers, flow.target_servers
    stamped = {"message_timestamp_type": "LogAppendTime", "compression_type": "lz4"}
    flow.create(topic, partitions=3, retention_ms="864000000", **stamped)
    write(nyc, topic, ["a"], 2)
    assert flow.mirror().failures == []
    before = overrides(nyc, topic)
    fail_over(flow)
    write(lon, flow.twin(topic), ["b"], 1)
    fail_back(flow, Mode.REBUILD)
    assert overrides(nyc, topic) == before
    for partition, record in ((2, "a"), (1, "b")):
        (home,) = read_with_offsets(nyc, topic)[partition].values()
        (there,) = read_with_offsets(lon, flow.twin(topic))[partition].values()
        assert (home.value, home.timestamp) == (there.value, there.timestamp) == (record.encode(), there.timestamp)

    # A topic that is stamped on arrival takes what goes home as it was stamped, whole or made anew.
    fail_over(flow)
    write(lon, flow.twin(topic), ["c"], 0)
    fail_back(flow)
    assert overrides(nyc, topic) == before
    (home,) = read_with_offsets(nyc, topic)[0].values()
    (there,) = read_with_offsets(lon, flow.twin(topic))[0].values()
    assert home.timestamp[1] == there.timestamp[1]


def overrides(servers: str, topic: str) -> dict[str, str]:
    """What is set on the topic itself."""
    admin, resource = AdminClient({"bootstrap.servers": servers}), ConfigResource("topic", topic)
    entries = admin.describe_configs([resource])[resource].result(30).values()
    return {entry.name: entry.value for entry in entries if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value}


def test_a_twin_that_was_made_anew_on_the_target_is_told_and_what_it_has_goes_home(
    kafka_pair: KafkaClusters, tmp_path: Path
) -> None:
    topic = new_name()
    flow = flow_of(kafka_pair, tmp_path, topic)
    nyc, lon, twin = flow.source_servers, flow.target_servers, flow.twin(topic)
    flow.create(topic)
    write(nyc, topic, numbered("a", 3))
    assert flow.mirror().failures == []
    fail_over(flow)
    delete_topic(lon, twin)
    create_topic(lon, twin, 1, {})
    write(lon, twin, ["b"])
    refused = plan_of(flow).refused
    assert any("has a twin that was deleted and created again" in problem for problem in refused)
    fail_back(flow, rebuild_damaged=True)
    assert values_of(nyc, topic) == values_of(lon, twin) == ["b"]
    write(nyc, topic, ["c"])
    run = flow.mirror()
    assert (run.failures, run.recorded.records) == ([], 1)
    assert values_of(lon, twin) == ["b", "c"]


def test_a_topic_that_somebody_else_made_meanwhile_is_not_filled(
    kafka_pair: KafkaClusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_name()
    flow = flow_of(kafka_pair, tmp_path, topic)
    flow.create(topic, partitions=2)
    write(flow.source_servers, topic, ["a"])
    assert flow.mirror().failures == []
    fail_over(flow)
    plan = plan_of(flow, Mode.REBUILD)
    await_gone = failback_topics._await_gone

    def then_somebody_writes(*asked: Any) -> None:
        await_gone(*asked)
        create_topic(flow.source_servers, topic, 1, {})
        write(flow.source_servers, topic, ["somebody else's"])

    monkeypatch.setattr(failback_topics, "_await_gone", then_somebody_writes)
    stopped = failback_of(flow).carry_out(plan, carry_out_here, tasks=1)
    assert stopped.failure is not None
    assert f"somebody made {topic} anew and writes there" in stopped.failure
    monkeypatch.undo()
    failback_of(flow).abandon()
    assert flow.record().state is State.FAILED_OVER
    fail_back(flow, Mode.REBUILD)
    assert values_of(flow.source_servers, topic) == ["a"]
