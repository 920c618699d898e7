"""What counts as stranded on real clusters, and what becomes of it: never what came from the target in the first place,
nor what nobody has exported, nor signs of life."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from local.kafka import KafkaClusters
from support.failing_back import (
    both_ways,
    fail_back,
    fail_over,
    failback_of,
    new_name,
    numbered,
    plan_of,
    twin_of,
    values_of,
    write,
)
from support.mirroring import Twins, create_topic, producer, twins
from twinlog.cluster.copy_order import carry_out_here
from twinlog.ledger.failbacks import Failbacks
from twinlog.model.failback import Mode, Stranded
from twinlog.operations import failback_survey
from twinlog.operations.failback_plan import FailbackRequest
from twinlog.operations.failback_steps import FailbackSteps


def exported(flow: Twins, plan_id: str) -> list[str]:
    return [value.decode() for value in Failbacks(flow.ledger).exported(plan_id).column("value").to_pylist()]


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path) -> Twins:
    topic = new_name()
    made = twins(kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers, tmp_path, (topic,))
    made.create(topic)
    write(made.source_servers, topic, numbered("a", 4))
    return made


def test_signs_of_life_neither_go_home_nor_are_stranded(flow: Twins) -> None:
    topic = flow.flow.topics[0]
    flow = flow.with_settings(
        emit_heartbeats_enabled=True, heartbeats_replication_enabled=True, canary_enabled=True, canary_schedule="@daily"
    )
    for _ in range(2):
        assert flow.mirror().failures == []
    fail_over(flow)
    write(flow.source_servers, "heartbeats", ["beat"])
    write(flow.target_servers, flow.twin(topic), ["b"])
    assert list(plan_of(flow).topics) == [flow.twin(topic)]
    result = fail_back(flow)
    assert (result.figures["stranded_records"], result.figures["came_home"]) == (0, 1)


@pytest.mark.parametrize("stranded", [Stranded.LEAVE, Stranded.TOPIC, Stranded.APPEND])
def test_what_came_from_the_target_is_not_stranded(
    kafka_pair: KafkaClusters, tmp_path: Path, stranded: Stranded
) -> None:
    topic = new_name()
    there, back = both_ways(kafka_pair, tmp_path, topic, "identity")
    nyc, lon = there.source_servers, there.target_servers
    there.create(topic)
    create_topic(lon, topic, 1, {})
    write(nyc, topic, numbered("n", 3))
    assert there.mirror().failures == []
    write(lon, topic, numbered("l", 3))
    write(nyc, topic, ["s0"])
    assert back.mirror().failures == []
    write(nyc, topic, ["s1"])
    write(lon, topic, ["l3"])
    assert back.mirror().failures == []  # nyc: n n n s0 l l l s1 l3
    fail_over(there)

    plan = plan_of(there, stranded=stranded)
    assert [one.key for one in plan.records] == ["s0", "s1"]
    result = fail_back(there, stranded=stranded)
    assert exported(there, result.plan.id) == ["s0", "s1"]
    whole = [*numbered("n", 3), "s0", *numbered("l", 3), "s1", "l3"]
    assert values_of(nyc, topic) == whole
    on_lon = [*numbered("n", 3), *numbered("l", 4)]
    assert values_of(lon, topic) == ([*on_lon, "s0", "s1"] if stranded is Stranded.APPEND else on_lon)
    if stranded is Stranded.TOPIC:
        assert values_of(lon, f"{topic}.stranded") == ["s0", "s1"]
    for flow in (there, back):
        assert flow.mirror().recorded.records == 0


def test_what_went_home_before_a_failback_was_abandoned_is_not_stranded(
    flow: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = flow.flow.topics[0]
    assert flow.mirror().failures == []
    write(flow.source_servers, topic, ["s"])
    fail_over(flow)
    write(flow.target_servers, flow.twin(topic), ["b0"])
    first = failback_of(flow)
    with monkeypatch.context() as patched:
        patched.setattr(FailbackSteps, "over", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            first.carry_out(plan_of(flow, stranded=Stranded.TOPIC), carry_out_here, tasks=1)
    first.abandon()
    write(flow.target_servers, flow.twin(topic), ["b1"])

    plan = plan_of(flow, stranded=Stranded.TOPIC)
    assert plan.stranded == ()
    fail_back(flow, stranded=Stranded.TOPIC)
    assert values_of(flow.source_servers, topic) == [*numbered("a", 4), "s", "b0", "b1"]
    assert values_of(flow.target_servers, flow.twin(topic)) == [*numbered("a", 4), "b0", "b1"]
    assert values_of(flow.target_servers, f"{topic}.stranded") == ["s"]


@pytest.mark.parametrize("stranded", [Stranded.LEAVE, Stranded.TOPIC])
def test_what_is_written_after_the_export_crosses_like_anything_new(
    flow: Twins, monkeypatch: pytest.MonkeyPatch, stranded: Stranded
) -> None:
    topic = flow.flow.topics[0]
    assert flow.mirror().failures == []
    write(flow.source_servers, topic, ["s"])
    fail_over(flow)
    settle = FailbackSteps.settle

    def first_somebody_writes(self: FailbackSteps) -> None:
        write(flow.source_servers, topic, ["late"])
        settle(self)

    monkeypatch.setattr(FailbackSteps, "settle", first_somebody_writes)
    result = fail_back(flow, stranded=stranded)
    assert exported(flow, result.plan.id) == ["s"]
    assert values_of(flow.target_servers, flow.twin(topic)) == [*numbered("a", 4), "late"]


def test_what_a_rebuild_deletes_is_listed_and_exported_first(flow: Twins) -> None:
    topic = flow.flow.topics[0]
    assert flow.mirror().failures == []
    write(flow.source_servers, topic, ["s"])
    fail_over(flow)
    plan = plan_of(flow, Mode.REBUILD, Stranded.TOPIC)
    assert [one.key for one in plan.records] == ["s"]
    result = fail_back(flow, Mode.REBUILD, Stranded.TOPIC)
    assert exported(flow, result.plan.id) == values_of(flow.target_servers, f"{topic}.stranded") == ["s"]
    assert values_of(flow.source_servers, topic) == numbered("a", 4)


def test_topics_that_never_began_to_cross_are_named_and_cross_afterwards(flow: Twins) -> None:
    assert flow.mirror().failures == []
    new = new_name("new")
    fail_over(flow)
    flow = flow.with_settings(topics=(*flow.flow.topics, new))
    flow.create(new)
    write(flow.source_servers, new, ["x"])
    plan = plan_of(flow)
    assert any(f"{new} (1 offsets)" in note and "never began to cross" in note for note in plan.notes)
    fail_back(flow)
    assert flow.mirror().recorded.records == 1
    assert values_of(flow.target_servers, flow.twin(new)) == ["x"]


@pytest.mark.parametrize("naming", ["prefixed", "identity"])
def test_topics_that_were_made_on_the_target_go_home_where_somebody_says_so(
    kafka_pair: KafkaClusters, tmp_path: Path, naming: str
) -> None:
    mark = new_name("")
    topic, new, other = f"old{mark}", f"new{mark}", f"other{mark}"
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    flow = twins(nyc, lon, tmp_path, (f".*{mark}",), naming=naming)
    flow.create(topic)
    write(nyc, topic, ["a"])
    assert flow.mirror().failures == []
    fail_over(flow)
    there = twin_of(flow, new)
    create_topic(lon, there, 2, {"retention_ms": "864000000"})
    write(lon, there, numbered("b", 3), 1)
    assert any(f"{there}" in note and "--also" in note for note in plan_of(flow).notes)
    flow.create(other)
    ask = FailbackRequest(also=(there, twin_of(flow, other), "elsewhere"))
    refused = "; ".join(failback_of(flow).plan(ask).refused)
    assert f"elsewhere is to go home too, and is not on {flow.flow.target}" in refused
    assert f"{twin_of(flow, other)} is to go home too, and is not on {flow.flow.target}" in refused
    plan = failback_of(flow).plan(FailbackRequest(also=(there,)))
    assert (plan.refused, plan.delete) == ((), {})
    result = failback_of(flow).carry_out(plan, carry_out_here, tasks=2)
    assert (result.failure, result.figures["verdict"]) == (None, "equal"), result.warnings
    assert values_of(nyc, new, 1) == values_of(lon, there, 1) == numbered("b", 3)
    write(nyc, new, ["c"], 0)
    assert flow.mirror().recorded.records == 1
    assert values_of(lon, there, 0) == ["c"]


def test_what_an_open_transaction_hides_is_waited_for(flow: Twins, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = flow.flow.topics[0]
    assert flow.mirror().failures == []
    fail_over(flow)
    writer = producer(flow.source_servers, transactional_id=f"writes-{topic}")
    writer.init_transactions(30)
    writer.begin_transaction()
    writer.produce(topic, b"open", b"open")
    assert writer.flush(30) == 0
    write(flow.source_servers, topic, ["behind it"])
    with monkeypatch.context() as patched:
        patched.setattr(failback_survey, "SETTLES_WITHIN_S", 0.5)
        (refused,) = plan_of(flow).refused
    assert f"(transactional id writes-{topic}) has had a transaction open since offset 4" in refused
    with ThreadPoolExecutor(1) as pool:
        planning = pool.submit(plan_of, flow)
        writer.commit_transaction(30)
        plan = planning.result()
    assert (plan.refused, [one.key for one in plan.records]) == ((), ["open", "behind it"])


def test_compacted_topics_whose_last_values_may_differ_are_named(kafka_pair: KafkaClusters, tmp_path: Path) -> None:
    topic = new_name()
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    flow = twins(nyc, lon, tmp_path, (topic,))
    flow.create(topic, cleanup_policy="compact")
    write(nyc, topic, ["a"])
    assert flow.mirror().failures == []
    fail_over(flow)
    assert not [note for note in plan_of(flow).notes if "compacted" in note]
    write(nyc, topic, ["a"])
    for stranded, which in ((Stranded.LEAVE, "not the same"), (Stranded.APPEND, "older")):
        notes = plan_of(flow, stranded=stranded).notes
        assert [note for note in notes if f"{topic} is compacted" in note and f"may be {which} on" in note]
