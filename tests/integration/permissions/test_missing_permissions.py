"""A mirror that is not allowed everything: who lacks which operation on what is said in one sentence, and the rest of
the flow goes on. Of mirroring both ways: `test_two_way_permissions`."""

from __future__ import annotations

import functools

import pytest

from local.kafka import KafkaClusters
from support.guarded import MIRROR, allow_copying, as_mirror, internal_topics
from support.mirroring import Twins
from support.source_logs import fill
from support.syncing import Hand, rows, sync
from twinlog.cluster.access import flow_access
from twinlog.errors import NotAuthorizedError
from twinlog.model.findings import FindingKind
from twinlog.model.lanes import position_group
from twinlog.model.offsets import TopicPartition
from twinlog.operations.preflight import Concern
from twinlog.operations.status import status
from twinlog.operations.view import view


@pytest.fixture
def limited(flow: Twins, guarded: KafkaClusters) -> Twins:
    """As the mirror, which is allowed only what a test gives it."""
    return as_mirror(flow, guarded)


def test_topics_whose_settings_may_not_be_read_are_named(
    flow: Twins, limited: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    closed = f"{topic}-closed"
    nyc.create(closed)
    for name, operations in ((topic, ("DESCRIBE", "DESCRIBE_CONFIGS")), (closed, ("DESCRIBE",))):
        for operation in operations:
            nyc.allow(MIRROR, operation, name)
    for operation in ("CREATE", "DESCRIBE", "DESCRIBE_CONFIGS"):
        lon.allow(MIRROR, operation, f"{flow.flow.source}.", pattern="PREFIXED")
    lon.allow(MIRROR, "DESCRIBE", internal_topics(flow), pattern="PREFIXED")

    found = sync(limited)

    source, target, made = flow.flow.source, flow.flow.target, f"{internal_topics(flow)}made.internal"
    assert found.exit_code == 1
    assert flow.twin(topic) in lon.topics()
    assert flow.twin(closed) not in lon.topics()
    assert found.failed == (
        f"cluster {source}: User:{MIRROR} is not allowed DESCRIBE_CONFIGS on topic {closed}, so the settings are not "
        "compared and a twin that is missing is not created",
        f"cluster {source}: User:{MIRROR} is not allowed DESCRIBE on the cluster, so ACLs are not compared",
        f"cluster {target}: User:{MIRROR} is not allowed CREATE on topic {made}, so no ACL or quota is "
        "changed, and no topic will ever be deleted",
    )


def not_shown(flow: Twins, topic: str) -> str:
    return (
        f"cluster {flow.flow.source}: User:{MIRROR} is not allowed DESCRIBE on topic {topic}, so it is not copied; "
        "if it is gone for good, add it to topics.exclude"
    )


def test_a_topic_that_the_flow_names_and_that_may_not_be_seen_is_named(
    flow: Twins, limited: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    hidden = f"{topic}-hidden"
    nyc.create(hidden)
    for name in (topic, hidden):
        fill(flow.source_servers, name, ["a record"])
    allow_copying(flow, topic, nyc, lon)
    naming = limited.with_settings(topics=(topic, hidden), sync_topic_acls_enabled=False)
    sentence = not_shown(flow, hidden)

    result, looked, found = naming.mirror(), naming.look(), sync(naming)

    assert result.failures == [sentence]
    assert (result.recorded.records, looked.reasons) == (1, (sentence,))
    assert found.failed == (sentence,)


def test_a_topic_that_was_mirrored_and_may_no_longer_be_seen_is_named(
    flow: Twins, limited: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    hidden = f"{topic}-hidden"
    nyc.create(hidden)
    flow.mirror()
    for name in (topic, hidden):
        fill(flow.source_servers, name, ["a record"])
    allow_copying(flow, topic, nyc, lon)
    bounded = limited.with_settings(sync_topic_acls_enabled=False)
    sentence = not_shown(flow, hidden)

    looked, result, found = bounded.look(), bounded.mirror(), sync(bounded)

    assert result.failures == [sentence]
    assert (result.recorded.records, looked.reasons[-1]) == (1, sentence)
    assert found.failed == (sentence,)


def test_a_twin_that_may_not_be_created_is_named_and_the_other_is_made(
    flow: Twins, limited: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    other, twin = f"{topic}-other", flow.twin(topic)
    nyc.create(other)
    for name in (topic, other):
        allow_copying(flow, name, nyc, lon)
    lon.allow(MIRROR, "CREATE", twin, permission="DENY")

    found = sync(limited.with_settings(sync_topic_acls_enabled=False))

    assert found.failed == (
        f"cluster {flow.flow.target}: User:{MIRROR} is not allowed CREATE on topic {twin}, so not created",
    )
    assert lon.topics() & {twin, flow.twin(other)} == {flow.twin(other)}


def test_settings_that_may_not_be_changed_are_named(
    flow: Twins, limited: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    sync(flow)
    nyc.set(topic, retention_ms="5000")
    nyc.grow(topic, 2)
    allow_copying(flow, topic, nyc, lon)

    found = sync(limited.with_settings(sync_topic_acls_enabled=False))

    twin, target = flow.twin(topic), flow.flow.target
    assert found.failed == (
        f"cluster {target}: User:{MIRROR} is not allowed ALTER on topic {twin}, so partitions were not added",
        f"cluster {target}: User:{MIRROR} is not allowed ALTER_CONFIGS on topic {twin}, so settings were not changed",
    )


def test_acls_that_may_be_read_but_not_added_are_named(
    flow: Twins, limited: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    allow_copying(flow, topic, nyc, lon)
    nyc.allow("alice", "READ", topic)
    cluster = (MIRROR, "DESCRIBE", "kafka-cluster")

    with nyc.allowing(*cluster, kind="BROKER"), lon.allowing(*cluster, kind="BROKER"):
        found = sync(limited)

    (sentence,) = found.failed
    assert sentence.startswith(f"cluster {flow.flow.target}: User:{MIRROR} is not allowed ALTER on the cluster, so ")
    assert sentence.endswith("ACLs were not added")
    assert flow.twin(topic) in lon.topics()


def test_a_twin_that_may_not_be_deleted_is_named(flow: Twins, limited: Twins, topic: str, nyc: Hand, lon: Hand) -> None:
    sync(flow)
    nyc.delete(topic)
    new = f"{topic}-new"
    nyc.create(new)
    allow_copying(flow, new, nyc, lon)
    nyc.allow(MIRROR, "DESCRIBE", topic)

    found = sync(limited.with_settings(sync_topic_acls_enabled=False, sync_topic_deletes=True), approved=True)

    twin = flow.twin(topic)
    assert found.failed == (
        f"cluster {flow.flow.target}: User:{MIRROR} is not allowed DELETE on topic {twin}, so not deleted",
    )
    assert {twin, flow.twin(new)} <= lon.topics()


def test_a_topic_that_the_mirror_may_no_longer_see_is_not_taken_for_deleted(
    flow: Twins, limited: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    sync(flow)
    for operation in ("READ", "DESCRIBE"):
        lon.allow(MIRROR, operation, internal_topics(flow), pattern="PREFIXED")
        lon.allow(MIRROR, operation, flow.flow.source, pattern="PREFIXED")
    lon.allow(MIRROR, "DELETE", flow.flow.source, pattern="PREFIXED")
    following = limited.with_settings(sync_topic_acls_enabled=False, sync_topic_deletes=True)

    assert rows(sync(following, dry_run=True, approved=True)) == []


def test_a_state_that_may_not_be_seen_is_not_taken_for_active(
    flow: Twins, limited: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    allow_copying(flow, topic, nyc, lon)
    state = f"{internal_topics(flow)}state.internal"
    lon.allow(MIRROR, "DESCRIBE", state, permission="DENY")

    found = sync(limited)

    sentence = (
        f"cluster {flow.flow.target}: User:{MIRROR} is not allowed DESCRIBE on topic {state}, so it is not known "
        f"whether {flow.flow.name} has failed over, and its topics on {flow.flow.target} are left alone"
    )
    assert (found.skipped, found.failed, found.exit_code) == (sentence, (sentence,), 1)
    assert flow.twin(topic) not in lon.topics()


def test_a_memory_that_may_not_be_seen_is_not_taken_for_empty(
    flow: Twins, limited: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    gone = f"{topic}-gone"
    nyc.create(gone)
    sync(flow)
    nyc.delete(gone)
    allow_copying(flow, topic, nyc, lon)
    nyc.allow(MIRROR, "DESCRIBE", gone)
    lon.allow(MIRROR, "DELETE", f"{flow.flow.source}.", pattern="PREFIXED")
    made = f"{internal_topics(flow)}made.internal"
    following = limited.with_settings(sync_topic_deletes=True)
    deletion = ("delete topic", flow.twin(gone), "topic", flow.twin(gone), None)

    seen = sync(following, dry_run=True, approved=True)
    lon.allow(MIRROR, "DESCRIBE", made, permission="DENY")
    hidden = sync(following, approved=True)

    assert deletion in rows(seen)
    assert rows(hidden) == []
    assert hidden.failed == (
        f"cluster {flow.flow.target}: User:{MIRROR} is not allowed DESCRIBE on topic {made}, so no ACL or quota is "
        "compared, no topic is deleted, and a topic that is created now will never be",
    )
    assert flow.twin(gone) in lon.topics()


def test_quotas_and_users_that_may_not_be_listed_are_named(
    flow: Twins, limited: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    allow_copying(flow, topic, nyc, lon)
    missing = [
        f"cluster {alias}: User:{MIRROR} is not allowed {operation} on the cluster, so {what} are not listed"
        for operation, what in (("DESCRIBE_CONFIGS", "quotas"), ("DESCRIBE", "SCRAM users"))
        for alias in (flow.flow.source, flow.flow.target)
    ]

    listed = sync(limited)
    copied = sync(limited.with_settings(sync_topic_acls_mode="full"))

    # Only where they are to be copied does their absence leave something undone.
    assert list(listed.notes) == missing
    assert list(copied.failed[-4:]) == missing
    assert flow.twin(topic) in lon.topics()


def test_preflight_names_what_it_may_not_judge(flow: Twins, limited: Twins, topic: str, nyc: Hand, lon: Hand) -> None:
    flow.mirror()
    allow_copying(flow, topic, nyc, lon)
    journal = f"{internal_topics(flow)}journal.internal"
    lon.allow(MIRROR, "DESCRIBE_CONFIGS", journal, permission="DENY")

    found = sync(limited).preflight
    (told,) = status(limited.topology, functools.partial(flow_access, limited.topology)).flows

    sentence = (
        f"cluster {flow.flow.target}: User:{MIRROR} is not allowed DESCRIBE_CONFIGS on topic {journal}, so "
        "min.insync.replicas is not judged there"
    )
    for warnings in (found, told.preflight):
        assert [warning.message for warning in warnings if warning.concern is Concern.NOT_JUDGED] == [sentence]
        assert flow.twin(topic) in next(
            warning.topics
            for warning in warnings
            if (warning.cluster, warning.concern) == (flow.flow.target, Concern.FEW_IN_SYNC)
        )


def test_the_view_names_heartbeats_that_may_not_be_seen(flow: Twins, limited: Twins, nyc: Hand, lon: Hand) -> None:
    source, target = flow.flow.source, flow.flow.target
    hidden, shown = f"{source}.heartbeats", f"{source}.orders"
    for name in (hidden, shown):
        lon.create(name)
    lon.allow(MIRROR, "DESCRIBE", shown)

    found = view(limited.topology, functools.partial(flow_access, limited.topology), 15.0)
    lon.allow(MIRROR, "DESCRIBE", hidden)
    whole = view(limited.topology, functools.partial(flow_access, limited.topology), 15.0)

    _, there = found.clusters
    assert (found.exit_code, whole.exit_code) == (1, 0)
    assert there.hidden == (
        f"cluster {target}: User:{MIRROR} is not allowed DESCRIBE on topic {hidden}, so clusters that reach it may be "
        "missing here, or topics that came from there"
    )
    assert (there.upstream, there.remote_topics) == ((), (shown,))
    assert [upstream.cluster for upstream in whole.clusters[1].upstream] == [source]


def test_a_run_goes_on_beside_a_permission_that_is_missing(
    flow: Twins, limited: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    fill(flow.source_servers, topic, ["copied all the same"])
    allow_copying(flow, topic, nyc, lon)

    result = limited.mirror()

    assert result.recorded.records == 1
    assert any(f"User:{MIRROR} is not allowed DESCRIBE on the cluster" in warning for warning in result.warnings)


def test_a_run_names_the_twin_that_it_may_not_see_and_the_other_is_copied(
    flow: Twins, limited: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    hidden = f"{topic}-hidden"
    nyc.create(hidden)
    sync(flow)
    for name in (topic, hidden):
        fill(flow.source_servers, name, ["a record"])
        allow_copying(flow, name, nyc, lon)
    lon.allow(MIRROR, "DESCRIBE", flow.twin(hidden), permission="DENY")

    result = limited.mirror()

    (finding,) = result.findings
    assert finding.message == (
        f"cluster {flow.flow.target}: User:{MIRROR} is not allowed DESCRIBE on topic {flow.twin(hidden)}, so it is not "
        "copied"
    )
    assert result.recorded.records == 1


def test_a_run_names_the_partitions_that_the_twin_lacks_and_may_not_be_given(
    flow: Twins, limited: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    sync(flow)
    nyc.grow(topic, 2)
    for partition in range(2):
        fill(flow.source_servers, topic, ["a record"], partition)
    allow_copying(flow, topic, nyc, lon)

    result = limited.mirror()

    (finding,) = result.findings
    assert (finding.kind, finding.partition) == (FindingKind.TARGET_MISSING, TopicPartition(topic, 1))
    assert "has 1 of the 2 partitions that" in finding.message
    assert any(f"User:{MIRROR} is not allowed ALTER on topic {flow.twin(topic)}" in note for note in result.notes)
    assert result.recorded.records == 1


def test_a_run_that_may_not_see_its_own_positions_says_whose_permission_is_missing(
    flow: Twins, limited: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    allow_copying(flow, topic, nyc, lon)
    group = position_group(flow.flow.name)
    lon.allow(MIRROR, "DESCRIBE", group, kind="GROUP", permission="DENY")

    with pytest.raises(NotAuthorizedError) as refused:
        limited.mirror()

    sentence = f"cluster {flow.flow.target}: User:{MIRROR} is not allowed DESCRIBE on group {group}, so "
    assert str(refused.value).startswith(sentence)
