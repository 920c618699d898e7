"""Repairs of what a reconciliation has found, on real clusters: nothing without a plan, and then as it should be."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from local.kafka import KafkaClusters
from support.failing_back import commit, committed
from support.mirroring import Twins, twins
from support.reading import read_with_offsets
from support.reconciling import FULL, differences, reconcile
from support.repairing import HERE, plan_of, repair, repair_of
from support.source_logs import COMPACTED, compacted_log, delete_records, fill, interleave
from support.syncing import Hand
from support.tampering import doubled, dropped, replaced, tampering
from support.waiting import await_condition
from twinlog.cluster.topic_settings import read_settings
from twinlog.errors import RepairError
from twinlog.model.lanes import journal_topic, lane_of
from twinlog.model.offsets import TopicPartition
from twinlog.model.reconciliation import Kind, Verdict
from twinlog.model.repair import Records, Remedy
from twinlog.operations.reconcile import Scope
from twinlog.operations.recopy import Recopying


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    source, target = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    return twins(source, target, tmp_path, (topic,))


def copy(flow: Twins, topic: str, first: int, count: int = 10) -> None:
    fill(flow.source_servers, topic, range(first, first + count), linger_ms=100)
    assert flow.mirror().failures == []


def internal_topics(flow: Twins) -> list[str]:
    topics = AdminClient({"bootstrap.servers": flow.target_servers}).list_topics(timeout=10).topics
    return [name for name in topics if "repair-" in name and flow.flow.source in name]


def settings_of(flow: Twins, topic: str) -> dict[str, str]:
    with flow.ends().target.raw() as target:
        return dict(target.run(read_settings(target, [flow.twin(topic)])).topics[flow.twin(topic)].overrides)


def test_a_twin_is_copied_again_and_takes_its_place(flow: Twins, topic: str) -> None:
    """Wrong in every way, transactions among it, two partitions; then equal, and mirrored on as before."""
    flow = flow.with_settings(sync_topic_configs_enabled=False)
    flow.create(topic, 2, retention_ms="-1")
    interleave(flow.source_servers, topic)
    assert flow.mirror().failures == []
    for change in (dropped(3), doubled(2), replaced(5, b"15", b"XX")):
        with tampering({flow.twin(topic): change}):
            copy(flow, topic, 10)
    fill(flow.target_servers, flow.twin(topic), ["not ours"], 1)
    # Somebody's own on the target, which no sync of this flow touches.
    Hand(flow.target_servers).set(flow.twin(topic), max_message_bytes="2000000")
    assert reconcile(flow, FULL).verdict is Verdict.DIFFERENT
    before = flow.read_source(topic)

    plan = plan_of(flow)
    (one,) = plan.recopy
    assert (one.topic, one.twin, one.only_there) == (topic, flow.twin(topic), 0)
    assert (plan.remedies, plan.recover) == ((Remedy.RECOPY, Remedy.CHECKPOINTS), ())
    assert any("DELETED" in sentence for sentence in plan.sentences)

    result = repair(flow)
    assert (result.verdict, result.left) == ("equal", ())
    assert reconcile(flow, FULL).differences == ()
    assert flow.read_target(topic) == before
    assert settings_of(flow, topic)["max.message.bytes"] == "2000000"
    assert internal_topics(flow) == []
    copy(flow, topic, 50)
    found = reconcile(flow, FULL)
    assert (found.differences, flow.read_target(topic)) == ((), flow.read_source(topic))


def test_groups_go_on_where_they_were(flow: Twins, topic: str) -> None:
    """A record was dropped, so that the ledger's word is off by one for whoever reads what follows it."""
    flow.create(topic)
    copy(flow, topic, 0)
    with tampering({flow.twin(topic): dropped(3)}):
        copy(flow, topic, 10)
    copy(flow, topic, 20)
    twin, lon = flow.twin(topic), flow.target_servers
    seen = read_with_offsets(lon, twin)[0]
    wanted = {f"group-{value}-{topic}": value for value in ("7", "16", "25")}
    for group, value in wanted.items():
        (place,) = [offset for offset, one in seen.items() if one.value == value.encode()]
        commit(lon, group, twin, place)
    end = max(seen) + 1
    commit(lon, f"group-end-{topic}", twin, end)
    reconcile(flow, FULL)
    result = repair(flow)
    assert (result.verdict, result.warnings) == ("equal", ())
    now = read_with_offsets(lon, twin)[0]
    for group, value in wanted.items():
        assert now[committed(lon, group, twin)].value == value.encode()
    assert committed(lon, f"group-end-{topic}", twin) == max(now) + 1


def test_a_group_that_reads_the_twin_is_in_the_way(flow: Twins, topic: str) -> None:
    flow.create(topic)
    with tampering({flow.twin(topic): dropped(3)}):
        copy(flow, topic, 0)
    reconcile(flow)
    settings = {"bootstrap.servers": flow.target_servers, "auto.offset.reset": "earliest"}
    reader = Consumer({**settings, "group.id": f"busy-{topic}"})
    reader.subscribe([flow.twin(topic)])
    await_condition(lambda: reader.poll(0.2) is not None, "the consumer reads")
    reader.commit(asynchronous=False)
    try:
        plan = plan_of(flow)
        assert any("busy-" in note for note in plan.notes)
        stopped = repair_of(flow).carry_out(plan, HERE)
        assert stopped.failure is not None
        assert "stop them" in stopped.failure
        assert len(flow.read_target(topic)[0]) == 9
    finally:
        reader.close()
    again = plan_of(flow)
    assert (again.id, again.under_way) == (plan.id, True)
    assert repair(flow).verdict == "equal"
    assert len(flow.read_target(topic)[0]) == 10


def test_what_is_missing_is_recovered_once_and_counted_from_then_on(flow: Twins, topic: str) -> None:
    flow.create(topic, 2)
    copy(flow, topic, 0)
    with tampering({flow.twin(topic): replaced(9, b"19", b"XX")}):
        copy(flow, topic, 10)
    delete_records(flow.target_servers, flow.twin(topic), 4)
    assert [one.kind for one in differences(reconcile(flow, FULL), topic)] == [Kind.MISSING, Kind.ALTERED]
    plan = plan_of(flow, Records.RECOVER)
    assert (plan.remedies, plan.recopy) == ((Remedy.RECOVER,), ())
    assert any("1 altered" in note for note in plan.notes)

    result = repair(flow, Records.RECOVER)
    assert (result.figures["recovered"], result.figures["recovered_now"]) == (5, 5)
    # The twin still has what is wrong; what is missing is somewhere else.
    assert [one.kind for one in differences(reconcile(flow, FULL), topic)] == [Kind.ALTERED]
    assert reconcile(flow, FULL).tally[Kind.RECOVERED] == 4
    source = read_with_offsets(flow.source_servers, topic)[0]
    there = list(read_with_offsets(flow.target_servers, f"{flow.twin(topic)}.recovered")[0].values())
    assert [(one.key, one.value, one.timestamp) for one in there] == [
        (one.key, one.value, one.timestamp) for offset, one in source.items() if offset in (0, 1, 2, 3, 19)
    ]
    (header,) = there[-1].headers
    assert (header[0], (header[1] or b"").decode().rpartition("/")[2]) == ("twinlog.recovered", "19")

    again = repair(flow, Records.RECOVER)
    assert (again.figures["recovered"], again.figures["recovered_now"]) == (1, 0)


def test_where_others_may_write_records_are_recovered_and_no_topic_is_swapped(
    kafka_pair: KafkaClusters, tmp_path: Path, topic: str
) -> None:
    source, target = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    flow = twins(source, target, tmp_path, (topic,), naming="identity")
    flow.create(topic)
    with tampering({topic: dropped(9)}):
        copy(flow, topic, 0)
    reconcile(flow)
    plan = plan_of(flow)
    assert (plan.remedies, [one.into for one in plan.recover]) == ((Remedy.RECOVER,), [f"{topic}.recovered"])
    assert any("others may write" in note for note in plan.notes)
    assert repair(flow).verdict == "equal"


def test_settings_and_the_ledger_are_put_right(flow: Twins, topic: str) -> None:
    flow.create(topic)
    for number in range(3):
        copy(flow, topic, 10 * number)
    damaged = Path(flow.ledger.folder.file_path(flow.ledger.files()[0].link.name))
    damaged.write_bytes(b"PAR1 no longer")
    Hand(flow.target_servers).set(flow.twin(topic), retention_ms="1000000")
    assert {one.kind for one in reconcile(flow).differences} == {Kind.LEDGER, Kind.SETTING}
    plan = plan_of(flow)
    assert plan.remedies == (Remedy.SETTINGS, Remedy.LEDGER)
    assert any("retention.ms from 1000000" in sentence for sentence in plan.settings)
    assert damaged.name in (plan.ledger or "")
    result = repair(flow)
    assert (result.verdict, result.left) == ("equal", ())
    assert len(flow.ledger.files()) == 1
    assert reconcile(flow, FULL).records == 30


def test_a_ledger_that_knows_more_than_the_journal_is_not_rebuilt_from_it(flow: Twins, topic: str) -> None:
    flow.create(topic)
    copy(flow, topic, 0)
    copy(flow, topic, 10)
    journal = journal_topic(flow.flow.source, flow.flow.target)
    # Nobody can delete records of a compacted topic.
    Hand(flow.target_servers).set(journal, cleanup_policy="delete")
    delete_records(flow.target_servers, journal, 1, lane_of(TopicPartition(flow.twin(topic), 0), flow.flow.lanes))
    assert {one.kind for one in reconcile(flow).differences} == {Kind.LEDGER}
    plan = plan_of(flow)
    assert (plan.ledger, [one.topic for one in plan.recopy]) == (None, [topic])
    assert any("the ledger is not rebuilt" in note for note in plan.notes)
    assert repair(flow).verdict == "equal"
    assert flow.read_target(topic) == flow.read_source(topic)


def test_what_only_the_twin_has_is_not_lost_unasked(flow: Twins, topic: str) -> None:
    flow.create(topic)
    with tampering({flow.twin(topic): dropped(9)}):
        copy(flow, topic, 0)
    delete_records(flow.source_servers, topic, 4)
    reconcile(flow)
    plan = plan_of(flow)
    assert [one.only_there for one in plan.recopy] == [4]
    assert any("4 records that" in problem for problem in plan.refused)
    assert repair(flow, accept_loss=True).verdict == "equal"
    assert flow.read_target(topic) == flow.read_source(topic)


def test_a_compacted_topic_is_copied_again_as_it_is(flow: Twins, topic: str) -> None:
    flow.create(topic, **{name.replace(".", "_"): value for name, value in COMPACTED.items()})
    compacted_log(flow.source_servers, topic)
    assert flow.mirror().failures == []
    with tampering({flow.twin(topic): dropped(3)}):
        copy(flow, topic, 0)
    assert reconcile(flow, FULL).verdict is Verdict.DIFFERENT
    assert repair(flow).verdict == "equal"
    assert reconcile(flow, Scope(full=True, deep=True)).differences == ()


@pytest.mark.parametrize("point", ["_delete", "_fillings", "clear"])
def test_a_repair_that_died_goes_on(flow: Twins, topic: str, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a run of the flow came in between, which fills the twin on from the source."""
    flow.create(topic)
    with tampering({flow.twin(topic): dropped(3)}):
        copy(flow, topic, 0)
    commit(flow.target_servers, f"group-{topic}", flow.twin(topic), 5)
    reconcile(flow)
    plan = plan_of(flow)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Recopying, point, die)
        with pytest.raises(KeyboardInterrupt):
            repair_of(flow).carry_out(plan, HERE)
    fill(flow.source_servers, topic, range(10, 20), linger_ms=100)
    # One that finds a twin made anew says so.
    flow.mirror()
    assert plan_of(flow).under_way
    result = repair(flow)
    assert (result.plan.id, result.verdict) == (plan.id, "equal")
    now = read_with_offsets(flow.target_servers, flow.twin(topic))[0]
    assert [one.value for one in now.values()] == [str(number).encode() for number in range(20)]
    assert now[committed(flow.target_servers, f"group-{topic}", flow.twin(topic))].value == b"6"
    assert internal_topics(flow) == []


def test_a_repair_is_abandoned_and_leaves_nothing_behind(
    flow: Twins, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow.create(topic)
    with tampering({flow.twin(topic): dropped(3)}):
        copy(flow, topic, 0)
    reconcile(flow)
    monkeypatch.setattr(Recopying, "_swap", lambda *_: (_ for _ in ()).throw(RepairError("not now")))
    result = repair_of(flow).carry_out(plan_of(flow), HERE)
    assert (result.failure, result.done) == ("not now", ())
    assert internal_topics(flow) != []
    assert "abandoned" in repair_of(flow).abandon()
    assert internal_topics(flow) == []
    assert len(flow.read_target(topic)[0]) == 9
    assert any("was repaired after" in problem for problem in plan_of(flow).refused)


def test_there_is_nothing_to_repair_where_nothing_was_compared_or_all_is_equal(flow: Twins, topic: str) -> None:
    assert any("never compared" in problem for problem in plan_of(flow).refused)
    flow.create(topic)
    copy(flow, topic, 0)
    reconcile(flow)
    plan = plan_of(flow)
    assert (plan.refused, plan.remedies) == ((), ())
    assert repair_of(flow).carry_out(plan, HERE).verdict is None
