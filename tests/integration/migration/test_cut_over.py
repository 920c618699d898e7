"""The second half of a migration: the plan, the cut-over, and nothing of ours left behind."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet as pq

from local.kafka import KafkaClusters
from support.groups import commit, committed, read
from support.guarded import as_mirror
from support.migrating import cut_over, cutting_over, migrate, migrating, migration
from support.mirroring import Twins, create_topic, producer, twins
from support.reading import read_committed
from support.silent import closed_port
from support.source_logs import fill
from support.syncing import Hand, opposite, sync
from support.waiting import await_condition
from twinlog.cluster.copy_order import Executor, carry_out_here
from twinlog.errors import ClusterUnreachableError, FlowStateError
from twinlog.model.flow_state import State
from twinlog.model.migration import Phase
from twinlog.model.topology import Cluster
from twinlog.model.twin_settings import HELD
from twinlog.operations import migration_cut_over
from twinlog.operations.migrate import Asked

EVERYTHING = {"TOPIC": "*", "BROKER": "kafka-cluster"}
"""By its kind, what a mirror that may do everything is allowed, beside groups and transactions of its own."""


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    source, target = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    return twins(
        source, target, tmp_path, (f"{topic}.*",), groups=(f"{topic}.*",), naming="identity", canary_enabled=False
    )


def ours(flow: Twins) -> set[str]:
    """All that is on either cluster by a name that only this flow gives."""
    found = {name for servers in (flow.source_servers, flow.target_servers) for name in Hand(servers).topics()}
    found |= Hand(flow.target_servers).groups()
    return {name for name in found if flow.flow.source in name or flow.flow.target in name}


def test_applications_go_on_there_and_nothing_of_ours_is_left(flow: Twins, topic: str) -> None:
    flow = flow.with_settings(
        emit_checkpoints_enabled=True, emit_offset_syncs_enabled=True, checkpoints_topic_replication_factor=1
    )
    target, group = Hand(flow.target_servers), f"{topic}.readers"
    flow.create(topic, retention_ms="3600000", cleanup_policy="compact,delete")
    fill(flow.source_servers, topic, range(100))
    seen = read(flow.source_servers, group, topic, 60)

    migrate(flow)
    held = target.overrides(topic)
    fill(flow.source_servers, topic, range(100, 120))
    done = cut_over(flow)
    over = target.overrides(topic)
    seen += read(flow.target_servers, group, topic)
    before = ours(flow)
    cleaned = migrating(flow).clean_up()
    again = migrating(flow).clean_up()

    assert (done.failures, done.done) == ((), (Phase.SWITCHOVER,))
    assert {name: held.get(name) for name in HELD} == dict(HELD)
    assert over["retention.ms"] == "3600000"
    assert not {"retention.bytes", "min.compaction.lag.ms", "max.compaction.lag.ms"} & over.keys()
    assert sorted(int(value) for _, value in seen.elements()) == list(range(120))
    assert cleaned.failures == ()
    assert f"twinlog.{flow.flow.name}" in before
    assert ours(flow) == set()
    assert again.notes == (f"{flow.flow.name} was cleaned up before",)
    assert target.overrides(topic) == over
    assert cleaned.report is not None
    place = cleaned.report.removeprefix("file://")
    page = Path(place).read_text()
    assert f"topic twinlog.{flow.flow.source}.{flow.flow.target}" in page
    assert "was approved by somebody" in page
    rows = pq.read_table(place.removesuffix(".html") + "-groups.parquet").to_pylist()
    assert [(row["group"], row["topic"], row["offset"] > 0) for row in rows] == [(group, topic, True)]
    topics = {
        row["topic"]: row["records"] for row in pq.read_table(place.replace(".html", "-topics.parquet")).to_pylist()
    }
    assert topics[topic] == 120


def test_what_retention_would_take_stays_until_the_cut_over_and_goes_afterwards(
    guarded: KafkaClusters, tmp_path: Path, topic: str
) -> None:
    # lon looks every second for what is to be deleted.
    source, target = (guarded[name].bootstrap_servers for name in ("nyc", "lon"))
    flow = twins(source, target, tmp_path, (topic,), naming="identity", canary_enabled=False)
    small = {"segment.bytes": "1048576", "retention.ms": "-1"}
    records = [f"{number} " + "." * 100_000 for number in range(40)]
    create_topic(source, topic, 1, {**small, "retention.bytes": "-1"})
    fill(source, topic, records)

    migrate(flow)
    Hand(source).set(topic, retention_bytes="1048576")
    sync(flow)
    create_topic(target, f"{topic}.not-held", 1, {**small, "retention.bytes": "1048576"})
    fill(target, f"{topic}.not-held", records)
    await_condition(lambda: len(read_committed(target, f"{topic}.not-held")[0]) < 40, "what is not held is deleted", 60)
    before = read_committed(target, topic)[0]
    over = cut_over(flow)

    assert len(before) == 40
    assert over.failures == ()
    await_condition(lambda: len(read_committed(target, topic)[0]) < 40, "it is deleted by its size", 60)


def test_a_scheduler_that_has_not_heard_of_it_does_not_begin_anew(flow: Twins, topic: str) -> None:
    flow.create(topic)
    fill(flow.source_servers, topic, range(10))
    migrate(flow)
    cut_over(flow)
    migrating(flow).clean_up()
    fill(flow.target_servers, topic, ["of an application that has moved"])

    said = "was migrated and cleaned up .* take it out of the topology"
    with pytest.raises(FlowStateError, match=said):
        flow.mirror()
    looked = flow.look()

    assert looked.refused is not None
    assert "take it out of the topology" in looked.refused
    assert ours(flow) == set()
    assert len(read_committed(flow.target_servers, topic)[0]) == 11


def test_while_somebody_writes_nothing_is_cut_over_and_the_flow_goes_on(flow: Twins, topic: str) -> None:
    flow.create(topic)
    fill(flow.source_servers, topic, range(10))
    commit(flow.source_servers, f"{topic}.readers", topic, {0: 4})
    migrate(flow)
    writer = producer(flow.source_servers, transactional_id=f"{topic}-writer")
    writer.init_transactions(30)
    writer.begin_transaction()
    writer.produce(topic, "not decided yet", partition=0)
    writer.flush(30)

    with pytest.raises(FlowStateError, match="is not switched over"):
        cut_over(flow, within_s=1.0)
    writer.commit_transaction(30)

    assert (migration(flow).phase, migration(flow).holding) == (Phase.CUT_OVER, True)
    assert flow.record().state is State.ACTIVE
    assert committed(flow.target_servers, f"{topic}.readers", topic) == {}
    assert cut_over(flow).failures == ()
    assert committed(flow.target_servers, f"{topic}.readers", topic) == {0: 4}


@pytest.mark.parametrize("step", ["before", "after"])
def test_whoever_comes_after_one_that_was_cut_short_goes_on(
    flow: Twins, topic: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow.create(topic, retention_ms="3600000")
    fill(flow.source_servers, topic, range(10))
    commit(flow.source_servers, f"{topic}.readers", topic, {0: 4})
    migrate(flow)
    first = cutting_over(flow).plan()
    assert first is not None

    def killed(*_: object) -> Any:
        raise KeyboardInterrupt

    fill(flow.source_servers, topic, [10])
    with monkeypatch.context() as during:
        during.setattr(migration_cut_over, "release", killed)
        execute: Executor = carry_out_here if step == "after" else killed
        with pytest.raises(KeyboardInterrupt):
            cutting_over(flow).carry_out(first, execute, approved_by="somebody")
    assert migration(flow).phase is Phase.SWITCHOVER

    again = cutting_over(flow).plan()
    assert again is not None
    assert (again.id == first.id) is (step == "after")
    done = cutting_over(flow).carry_out(again, carry_out_here, approved_by="somebody else")

    assert (done.failures, done.migration.phase) == ((), Phase.CLEAN_UP)
    assert committed(flow.target_servers, f"{topic}.readers", topic) == {0: 4}
    assert Hand(flow.target_servers).overrides(topic)["retention.ms"] == "3600000"
    assert cutting_over(flow).plan() is None


def test_a_switchover_by_its_own_command_is_a_cut_over_too(flow: Twins, topic: str) -> None:
    flow.create(topic)
    fill(flow.source_servers, topic, range(10))
    migrate(flow)
    over = cutting_over(flow)
    plan = over.plan()
    assert plan is not None
    over.switchover.failover.apply(plan)

    assert cut_over(flow).migration.phase is Phase.CLEAN_UP
    assert "retention.ms" not in Hand(flow.target_servers).overrides(topic)


def test_a_source_that_is_switched_off_is_not_asked(flow: Twins, topic: str) -> None:
    flow.create(topic)
    fill(flow.source_servers, topic, range(10))
    migrate(flow)
    cut_over(flow)
    migrating(flow).report()
    clusters = {**flow.topology.clusters, flow.flow.source: Cluster(flow.flow.source, closed_port())}
    gone = replace(flow, topology=replace(flow.topology, clusters=clusters))

    with pytest.raises(ClusterUnreachableError):
        migrating(gone).clean_up()
    cleaned = migrating(gone).clean_up(without_source=True)

    assert cleaned.failures == ()
    assert any("since it was not asked" in line for line in cleaned.notes)
    assert ours(flow) == set()
    assert cleaned.report is not None
    assert topic in Path(cleaned.report.removeprefix("file://")).read_text()


def test_what_others_need_stays(flow: Twins, topic: str) -> None:
    back = opposite(flow)
    both = {flow.flow.name: flow.flow, back.flow.name: back.flow}
    flow.create(topic)
    fill(flow.source_servers, topic, range(10))
    migrate(flow)
    cut_over(flow)
    flow.topology.flows.update(both)

    with pytest.raises(FlowStateError, match=rf"disable {back.flow.name} in the topology first"):
        migrating(flow).clean_up()
    del flow.topology.flows[back.flow.name]
    flow.change_record(lambda record: record.moved_to(State.FAILING_BACK, "").moved_to(State.ACTIVE, ""))
    with pytest.raises(FlowStateError, match="was cut over and is active again"):
        migrating(flow).clean_up()

    assert flow.mirror().failures == []


def test_who_gives_up_has_a_flow_that_mirrors(flow: Twins, topic: str) -> None:
    flow.create(topic, retention_ms="3600000")
    fill(flow.source_servers, topic, range(10))
    moving = migrating(flow)
    moving.begin(Asked())
    moving.settings()
    assert Hand(flow.target_servers).overrides(topic)["retention.ms"] == "-1"

    given_up = moving.give_up()

    assert given_up.failures == ()
    assert Hand(flow.target_servers).overrides(topic)["retention.ms"] == "3600000"
    assert flow.record().migration is None
    assert flow.mirror().recorded.records == 10


def test_denials_and_permissions_of_ours_go_and_those_of_others_stay(
    guarded: KafkaClusters, tmp_path: Path, topic: str
) -> None:
    source, target = Hand(guarded["nyc"].bootstrap_servers), Hand(guarded["lon"].bootstrap_servers)
    plain = twins(
        guarded["nyc"].bootstrap_servers,
        guarded["lon"].bootstrap_servers,
        tmp_path,
        (f"{topic}.*",),
        groups=(f"{topic}.*",),
        naming="identity",
        canary_enabled=False,
        sync_topic_acls_mode="full",
    )
    flow = as_mirror(plain, guarded)
    plain.create(topic)
    fill(plain.source_servers, topic, range(20))
    source.allow("alice", "READ", topic)
    source.allow("alice", "WRITE", topic)
    source.allow("mirror", "READ", topic)
    for hand, prefix in product((source, target), (f"twinlog.{flow.flow.source}", topic)):
        for kind in ("GROUP", "TRANSACTIONAL_ID"):
            hand.allow("mirror", "ALL", prefix, kind=kind, pattern="PREFIXED")
    with ExitStack() as allowed:
        for hand, (kind, name) in product((source, target), EVERYTHING.items()):
            allowed.enter_context(hand.allowing("mirror", "ALL", name, kind=kind))
        migrate(flow)
        cut_over(flow, block_writes=True)
        denied, granted = source.acls(topic), target.acls(topic)
        cleaned = migrating(flow).clean_up()
    left_there, left_here = source.acls(topic), target.acls(topic)

    assert any(permission == "DENY" for _, permission, *_ in denied)
    assert ("User:mirror", "ALLOW", "READ", "LITERAL", topic) in granted
    assert cleaned.failures == ()
    assert any("denials to write" in line for line in cleaned.removed)
    assert not any(permission == "DENY" for _, permission, *_ in left_there)
    alice = {("User:alice", "ALLOW", operation, "LITERAL", topic) for operation in ("READ", "WRITE")}
    assert {acl for acl in left_here if acl[3] == "LITERAL"} == alice
