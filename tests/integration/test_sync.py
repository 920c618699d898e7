"""Topics, partitions and settings of real clusters brought in step, by plan and by application."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
import yaml

from local.kafka import KafkaClusters
from support.mirroring import NO_HEARTBEATS, Twins, producer, twins
from support.source_logs import fill
from support.syncing import Hand, both_ways, opposite, rows, sync
from support.waiting import await_condition
from twinlog.cluster.access import flow_access
from twinlog.cluster.topic_admin import delete_topics
from twinlog.model.flow_state import State
from twinlog.model.twin_settings import MOST
from twinlog.model.twin_topics import ReportKind
from twinlog.operations.lease import flow_store

OWN = {
    "compression.type": "producer",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": MOST,
    "message.timestamp.after.max.ms": MOST,
}


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    servers = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    return twins(*servers, tmp_path, (f"{topic}.*",))


@pytest.fixture
def nyc(flow: Twins) -> Hand:
    return Hand(flow.source_servers)


@pytest.fixture
def lon(flow: Twins) -> Hand:
    return Hand(flow.target_servers)


def test_a_dry_run_shows_what_a_sync_does_and_a_second_finds_nothing(
    flow: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    nyc.create(topic, 3, retention_ms="1000000", unclean_leader_election_enable="true")
    twin = flow.twin(topic)

    shown = sync(flow, dry_run=True)
    untouched = twin not in lon.topics()
    done = sync(flow)
    again = sync(flow)

    assert untouched
    assert rows(shown) == rows(done)
    assert (shown.exit_code, shown.applied) == (1, False)
    assert (done.exit_code, done.applied) == (0, True)
    assert (again.exit_code, rows(again), sync(flow, dry_run=True).exit_code) == (0, [], 0)
    assert rows(done)[0] == ("create topic", twin, "partitions", None, "3")
    assert lon.partitions(twin) == 3
    assert lon.overrides(twin) == {**OWN, "retention.ms": "1000000"}


def test_growth_and_settings_follow_and_a_removed_override_is_reset(
    flow: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    nyc.create(topic, 1, retention_ms="1000000", segment_bytes="2000000")
    twin = flow.twin(topic)
    sync(flow)

    nyc.grow(topic, 4)
    nyc.set(topic, retention_ms=None, segment_bytes="3000000", cleanup_policy="compact")
    changed = sync(flow)

    assert rows(changed) == [
        ("add partitions", twin, "partitions", "1", "4"),
        ("set setting", twin, "cleanup.policy", None, "compact"),
        ("set setting", twin, "segment.bytes", "2000000", "3000000"),
        ("reset setting", twin, "retention.ms", "1000000", None),
    ]
    assert lon.partitions(twin) == 4
    assert lon.overrides(twin) == {**OWN, "cleanup.policy": "compact", "segment.bytes": "3000000"}


def test_drift_on_the_target_is_reported_and_put_right(flow: Twins, topic: str, nyc: Hand, lon: Hand) -> None:
    nyc.create(topic, 1, retention_ms="1000000")
    twin = flow.twin(topic)
    sync(flow)

    # What the flow excludes stays as people made it.
    lon.set(twin, retention_ms="1000", compression_type="gzip", flush_ms="5", unclean_leader_election_enable="true")
    drift = sync(flow, dry_run=True)
    sync(flow)

    assert drift.exit_code == 1
    assert rows(drift) == [
        ("set setting", twin, "compression.type", "gzip", "producer"),
        ("set setting", twin, "retention.ms", "1000", "1000000"),
        ("reset setting", twin, "flush.ms", "5", None),
    ]
    assert lon.overrides(twin) == {**OWN, "retention.ms": "1000000", "unclean.leader.election.enable": "true"}


def test_defaults_of_the_source_are_written_out_where_the_flow_says_so(
    flow: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    nyc.create(topic)
    sync(flow.with_settings(use_defaults_from="source"))
    assert lon.overrides(flow.twin(topic))["segment.bytes"] == "1073741824"
    assert rows(sync(flow.with_settings(use_defaults_from="source"))) == []

    assert ("reset setting", flow.twin(topic), "segment.bytes", "1073741824", None) in rows(sync(flow))
    assert lon.overrides(flow.twin(topic)) == OWN


def test_settings_that_the_flow_does_not_sync_are_set_at_creation_only(
    flow: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    still = flow.with_settings(sync_topic_configs_enabled=False)
    nyc.create(topic, 1, retention_ms="1000000")
    sync(still)
    nyc.set(topic, retention_ms="2000000")

    assert rows(sync(still)) == []
    assert lon.overrides(flow.twin(topic))["retention.ms"] == "1000000"


def test_a_source_that_was_created_again_or_shrunk_is_reported(flow: Twins, topic: str, nyc: Hand, lon: Hand) -> None:
    nyc.create(topic, 3)
    sync(flow)
    nyc.delete(topic)
    nyc.create(topic, 2)

    found = sync(flow)

    assert found.exit_code == 1
    assert [(report.kind, report.topic) for report in found.plan.reports] == [
        (ReportKind.SHRUNK, topic),
        (ReportKind.RECREATED, topic),
    ]
    assert [report.kind for report in sync(flow).plan.reports] == [ReportKind.SHRUNK]
    assert lon.partitions(flow.twin(topic)) == 3


def test_partitions_that_somebody_added_to_a_twin_are_told_until_the_source_has_as_many(
    flow: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    nyc.create(topic)
    sync(flow)
    lon.grow(flow.twin(topic), 2)

    drift = sync(flow, dry_run=True)
    nyc.grow(topic, 2)

    (report,) = drift.plan.reports
    assert (drift.exit_code, rows(drift), report.kind) == (1, [], ReportKind.SHRUNK)
    assert f"where somebody has added some; they stay empty until {topic} has as many" in report.message
    assert (sync(flow).plan.reports, sync(flow, dry_run=True).exit_code) == ((), 0)


def test_deletion_follows_only_where_the_flow_says_so_and_only_what_twinlog_made(
    flow: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    made, found = topic, f"{topic}-found"
    lon.create(flow.twin(found), 1)
    for name in (made, found):
        nyc.create(name)
    sync(flow)
    for name in (made, found):
        nyc.delete(name)
    following = flow.with_settings(sync_topic_deletes=True)

    silent = sync(flow)
    waiting = sync(following)
    approved = sync(following, approved=True)

    assert (rows(silent), silent.plan.waiting) == ([], ())
    assert rows(waiting) == []
    assert [deletion.name for deletion in waiting.plan.waiting] == [flow.twin(made)]
    assert rows(approved) == [("delete topic", flow.twin(made), "topic", flow.twin(made), None)]
    assert flow.twin(made) not in lon.topics()
    assert flow.twin(found) in lon.topics()


def test_deletion_follows_by_itself_after_the_grace_period(flow: Twins, topic: str, nyc: Hand, lon: Hand) -> None:
    nyc.create(topic)
    sync(flow)
    nyc.delete(topic)
    patient = flow.with_settings(sync_topic_deletes=True, sync_topic_deletes_grace_seconds=2)

    first = sync(patient)
    # It counts from when the topic was first found gone, however often one looks.
    (due_at_ms,) = {deletion.due_at_ms for found in (first, sync(patient)) for deletion in found.plan.waiting}
    await_condition(lambda: rows(sync(patient)) != [], "the end of the grace period")

    assert rows(first) == []
    assert time.time() * 1000 >= due_at_ms
    assert flow.twin(topic) not in lon.topics()


def test_a_topic_that_somebody_created_anew_on_the_target_is_never_deleted(
    flow: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    nyc.create(topic)
    sync(flow)
    nyc.delete(topic)
    lon.delete(flow.twin(topic))
    lon.create(flow.twin(topic))

    assert rows(sync(flow.with_settings(sync_topic_deletes=True), approved=True)) == []
    assert flow.twin(topic) in lon.topics()


def test_a_topic_that_is_made_anew_while_the_old_one_is_being_deleted_stays(flow: Twins, topic: str, lon: Hand) -> None:
    lon.create(topic)
    with flow_access(flow.topology, flow.flow, "target").raw() as target:
        planned = {topic: target.run(target.metadata([topic])).topics[topic].topic_id}
        lon.delete(topic)
        lon.create(topic)
        refused = target.run(delete_topics(target, planned))
        anew = {topic: target.run(target.metadata([topic])).topics[topic].topic_id}
        target.run(delete_topics(target, anew))

    assert refused == {}
    assert anew[topic] not in (None, planned[topic])
    await_condition(lambda: topic not in lon.topics(), "the new one deleted by its own id")


def test_a_run_creates_and_grows_twins_with_their_settings_before_it_copies(
    flow: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    nyc.create(topic, 1, retention_ms="-1")
    writer = producer(flow.source_servers)
    writer.produce(topic, "from long ago", timestamp=1_000_000)
    writer.flush()

    first = flow.mirror()
    nyc.grow(topic, 2)
    later = producer(flow.source_servers)
    later.produce(topic, "in a new partition", partition=1)
    later.flush()
    second = flow.mirror()

    assert [result.recorded.records for result in (first, second)] == [1, 1]
    assert lon.overrides(flow.twin(topic)) == {**OWN, "retention.ms": "-1"}
    assert rows(sync(flow)) == []


def test_a_twin_that_others_made_has_its_settings_before_a_record_comes(
    flow: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    later = f"{topic}-later"
    nyc.create(topic)
    flow.mirror()
    # All settings have just been compared, and are not due again for minutes.
    nyc.create(later, 1, retention_ms="-1")
    lon.create(flow.twin(later), 1, retention_ms="1000")
    lon.set(flow.twin(topic), flush_ms="5")
    fill(flow.source_servers, later, ["value"])

    result = flow.mirror()
    in_step = lon.overrides(flow.twin(later))
    lon.set(flow.twin(later), flush_ms="5")
    flow.mirror()

    assert result.recorded.records == 1
    assert in_step == {**OWN, "retention.ms": "-1"}
    # What was changed since waits for its time.
    assert {lon.overrides(flow.twin(name))["flush.ms"] for name in (topic, later)} == {"5"}


def test_a_source_that_is_created_again_is_told_once_also_where_others_made_its_twin(
    flow: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    nyc.create(topic)
    lon.create(flow.twin(topic))
    sync(flow)
    nyc.delete(topic)
    nyc.create(topic)

    found = [[report.kind for report in sync(flow).plan.reports] for _ in range(2)]

    assert found == [[ReportKind.RECREATED], []]


def test_a_flow_that_looks_for_nothing_new_keeps_to_its_twins_until_a_sync_makes_others(
    flow: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    later = f"{topic}-later"
    still = flow.with_settings(refresh_topics_enabled=False)
    nyc.create(topic)
    first = still.mirror()
    nyc.create(later)
    for name in (topic, later):
        fill(flow.source_servers, name, ["value"])

    second, looked = still.mirror(), still.look()
    made = sync(still)
    third = still.mirror()

    assert [one.recorded.records for one in (first, second, third)] == [0, 1, 1]
    assert (second.failures, looked.new_topics, looked.records) == ([], (), 0)
    assert rows(made)[0] == ("create topic", flow.twin(later), "partitions", None, "1")


def test_a_flow_that_has_failed_over_is_left_alone(flow: Twins, topic: str, nyc: Hand, lon: Hand) -> None:
    nyc.create(topic)
    flow.mirror()
    lon.set(flow.twin(topic), compression_type="zstd")
    with flow_access(flow.topology, flow.flow, "target").raw() as target:
        store = flow_store(flow.flow, target)
        target.run(store.change(lambda record: record.moved_to(State.FAILED_OVER, flow.flow.name)))

    found = sync(flow)

    assert "failed over" in str(found.skipped)
    assert (rows(found), found.applied) == ([], False)
    assert lon.overrides(flow.twin(topic))["compression.type"] == "zstd"


def test_settings_do_not_come_back_from_where_they_went(flow: Twins, topic: str, nyc: Hand, lon: Hand) -> None:
    there = flow.with_settings(naming="identity")
    back = opposite(there)
    nyc.create(topic, 1, retention_ms="1000000")
    sync(there)

    nyc.set(topic, retention_ms=None)

    assert rows(sync(back)) == []
    assert rows(sync(there)) == [("reset setting", topic, "retention.ms", "1000000", None)]
    assert lon.overrides(topic) == OWN


def test_settings_of_a_topic_that_was_on_both_sides_before_are_told_and_nobody_s_are_undone(
    flow: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    there, back = both_ways(flow.with_settings(naming="identity"))
    nyc.create(topic, 1, retention_ms="1000000")
    lon.create(topic, 1, retention_ms="2000000")

    found = [sync(one) for one in (there, back, there)]
    leading = dataclasses.replace(back.flow, sync_topic_configs_enabled=False)
    led = {there.flow.name: there.flow, leading.name: leading}
    followed = sync(dataclasses.replace(there, topology=dataclasses.replace(there.topology, flows=led)))

    for result in found:
        # What mirroring itself needs is set on both sides; what people set is not.
        assert {row[2] for row in rows(result)} <= OWN.keys()
        (report,) = result.plan.reports
        assert report.kind is ReportKind.TWO_LEADERS
        assert "they differ in retention.ms; set them alike by hand" in report.message
        assert result.exit_code == 1
    assert rows(found[-1]) == []
    assert ("set setting", topic, "retention.ms", "2000000", "1000000") in rows(followed)
    assert followed.plan.reports == ()


def test_a_memory_that_is_damaged_keeps_no_topic_from_being_made(flow: Twins, topic: str, nyc: Hand, lon: Hand) -> None:
    nyc.create(topic)
    sync(flow)
    made = f"twinlog.{flow.flow.source}.{flow.flow.target}.made.internal"
    writer = producer(flow.target_servers)
    writer.produce(made, b"no json", b"topic something")
    assert writer.flush(30) == 0
    nyc.create(f"{topic}-later")

    result = sync(flow)

    assert flow.twin(f"{topic}-later") in lon.topics()
    (failure,) = [sentence for sentence in result.failed if made in sentence]
    assert "what Twinlog has made can't be read" in failure
    assert "no topic is deleted" in failure


def test_a_topic_that_is_deleted_where_it_came_from_is_not_created_again_from_its_twin(
    flow: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    there = flow.with_settings(naming="identity", sync_topic_deletes=True)
    back = opposite(there)
    nyc.create(topic)
    sync(there)
    nyc.delete(topic)

    waiting = sync(there)
    meanwhile = sync(back)
    sync(there, approved=True)

    assert [deletion.name for deletion in waiting.plan.waiting] == [topic]
    assert rows(meanwhile) == []
    assert meanwhile.notes[-1] == (
        f"these topics came from cluster {back.flow.target} and were deleted there, so they are not created there "
        f"again: {topic}"
    )
    assert topic not in nyc.topics() | lon.topics()


def test_the_command_line_shows_the_differences_and_exits_by_them(flow: Twins, topic: str, nyc: Hand) -> None:
    nyc.create(topic, 2)
    path = Path(flow.topology.ledger).with_name("topology.yaml")
    path.write_text(
        yaml.safe_dump(
            {
                "clusters": {
                    alias: {"bootstrap.servers": cluster.bootstrap_servers}
                    for alias, cluster in flow.topology.clusters.items()
                },
                "flows": {
                    flow.flow.name: {
                        "topics": [topic],
                        "replication.factor": 1,
                        "journal.topic.replication.factor": 1,
                        **NO_HEARTBEATS,
                    }
                },
            }
        )
    )

    def twinlog(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "twinlog.cli", "--topology", str(path), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    shown = twinlog("--json", "sync", flow.flow.name, "--dry-run")
    read = twinlog("sync", flow.flow.name, "--dry-run")
    told = twinlog("sync", flow.flow.name)
    after = twinlog("--json", "sync", flow.flow.name, "--dry-run")

    assert shown.returncode == 1, shown.stderr
    answer = json.loads(shown.stdout)
    assert answer["applied"] is False
    assert {"kind", "resource", "name", "from", "to"} <= answer["changes"][0].keys()
    assert (read.returncode, told.returncode) == (1, 0), told.stderr
    assert f"{flow.flow.name}: 5 differences, nothing was changed" in read.stdout
    assert f"create topic {flow.twin(topic)}: partitions none -> 2" in read.stdout
    assert f"create topic {flow.twin(topic)}: partitions none -> 2" in told.stdout
    assert (after.returncode, json.loads(after.stdout)["changes"]) == (0, [])
