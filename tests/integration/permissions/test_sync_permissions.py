"""Between guarded clusters that differ: ACLs, quotas and users, and a target that by default would delete what the
source keeps. What is said where the mirror is not allowed something: `test_missing_permissions`."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping

from local.kafka import KafkaClusters
from support.guarded import MIRROR
from support.mirroring import Twins, producer
from support.reading import read_committed
from support.syncing import Hand, opposite, rows, sync
from support.waiting import await_condition
from twinlog.cluster.access import flow_access
from twinlog.cluster.client_limits import change_quotas, read_quotas
from twinlog.model.quotas import Quota, QuotaChange
from twinlog.operations.sync_result import SyncResult


def test_safe_acls_let_nobody_write_to_a_twin(flow: Twins, topic: str, nyc: Hand, lon: Hand) -> None:
    twin = flow.twin(topic)
    nyc.allow("alice", "READ", topic)
    nyc.allow("alice", "WRITE", topic)
    nyc.allow("bob", "ALL", topic)
    nyc.allow("carol", "READ", topic, permission="DENY")
    nyc.allow("dave", "DESCRIBE", topic[:-2], pattern="PREFIXED")
    nyc.allow("erin", "READ", topic, kind="GROUP")
    nyc.allow("frank", "READ", "something-else")

    shown = sync(flow, dry_run=True)
    before = lon.acls(topic[:-2])
    sync(flow)

    assert shown.exit_code == 1
    assert ("add acl", f"topic {twin}", "User:alice", None, "ALLOW READ from *") in rows(shown)
    assert before == set()
    assert lon.acls(topic[:-2]) == {
        ("User:alice", "ALLOW", "READ", "LITERAL", twin),
        ("User:bob", "ALLOW", "READ", "LITERAL", twin),
        ("User:carol", "DENY", "READ", "LITERAL", twin),
        ("User:dave", "ALLOW", "DESCRIBE", "PREFIXED", flow.twin(topic[:-2])),
    }
    assert rows(sync(flow)) == []


def test_a_pattern_allows_nothing_of_the_target_s_own_that_is_named_like_a_twin(
    flow: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    nyc.allow("dave", "READ", topic[:-2], pattern="PREFIXED")

    sync(flow.with_settings(naming="custom", naming_format="all-${topic}"))

    assert lon.acls(topic[:-2]) == {("User:dave", "ALLOW", "READ", "LITERAL", f"all-{topic}")}


def test_what_twinlog_granted_is_revoked_with_the_source_and_what_others_granted_stays(
    flow: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    twin = flow.twin(topic)
    nyc.allow("alice", "READ", topic)
    nyc.allow("bob", "READ", topic)
    lon.allow("bob", "READ", twin)
    lon.allow("carol", "READ", twin)
    sync(flow)

    lon.revoke("alice", "READ", twin)
    drift = sync(flow, dry_run=True)
    sync(flow)
    restored = lon.acls(twin)
    for user in ("alice", "bob"):
        nyc.revoke(user, "READ", topic)
    revoked = sync(flow)

    assert drift.exit_code == 1
    assert rows(drift) == [("add acl", f"topic {twin}", "User:alice", None, "ALLOW READ from *")]
    assert {who for who, *_ in restored} == {"User:alice", "User:bob", "User:carol"}
    assert rows(revoked) == [("remove acl", f"topic {twin}", "User:alice", "ALLOW READ from *", None)]
    assert {who for who, *_ in lon.acls(twin)} == {"User:bob", "User:carol"}
    assert rows(sync(flow)) == []


def test_what_was_taken_away_by_hand_on_both_sides_is_not_twinlog_s_when_it_is_granted_again(
    flow: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    twin = flow.twin(topic)
    nyc.allow("alice", "READ", topic)
    sync(flow)
    nyc.revoke("alice", "READ", topic)
    lon.revoke("alice", "READ", twin)
    sync(flow)

    lon.allow("alice", "READ", twin)

    assert rows(sync(flow)) == []
    assert {who for who, *_ in lon.acls(twin)} == {"User:alice"}


def test_a_denial_to_everybody_does_not_stop_the_mirror(flow: Twins, topic: str, nyc: Hand, lon: Hand) -> None:
    nyc.allow("*", "WRITE", topic, permission="DENY")
    nyc.allow("carol", "READ", topic, permission="DENY")

    found = sync(flow)

    assert lon.acls(topic) == {("User:carol", "DENY", "READ", "LITERAL", flow.twin(topic))}
    (note,) = [note for note in found.notes if "would deny" in note]
    assert note.endswith(f"DENY WRITE to User:* on topic {flow.twin(topic)}")


def test_full_mode_takes_everything_along_and_safe_mode_takes_it_back(
    flow: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    twin, migrating = flow.twin(topic), flow.with_settings(sync_topic_acls_mode="full")
    nyc.allow("alice", "WRITE", topic)
    nyc.allow("alice", "READ", topic, kind="GROUP")
    nyc.allow("alice", "WRITE", topic, kind="TRANSACTIONAL_ID", pattern="PREFIXED")

    sync(migrating)
    migrated = lon.acls(topic)
    again = sync(migrating)
    sync(flow)

    assert migrated == {
        ("User:alice", "ALLOW", "WRITE", "LITERAL", twin),
        ("User:alice", "ALLOW", "READ", "LITERAL", topic),
        ("User:alice", "ALLOW", "WRITE", "PREFIXED", topic),
    }
    assert rows(again) == []
    assert lon.acls(topic) == set()


def test_full_mode_translates_the_names_in_patterns_and_denials(flow: Twins, topic: str, nyc: Hand, lon: Hand) -> None:
    migrating = flow.with_settings(sync_topic_acls_mode="full")
    renaming = migrating.with_settings(naming="custom", naming_format="${topic}.replica")
    nyc.allow("alice", "WRITE", topic[:-2], pattern="PREFIXED")
    nyc.allow("bob", "ALL", topic, permission="DENY")
    nyc.allow("carol", "READ", topic, kind="GROUP", permission="DENY")

    sync(migrating)
    prefixed = lon.acls(topic[:-2])
    sync(renaming)

    group = ("User:carol", "DENY", "READ", "LITERAL", topic)
    assert prefixed == {
        ("User:alice", "ALLOW", "WRITE", "PREFIXED", flow.twin(topic[:-2])),
        ("User:bob", "DENY", "ALL", "LITERAL", flow.twin(topic)),
        group,
    }
    # No pattern says "begins with this and ends with that", so it is written out for the topics that there are.
    assert lon.acls(topic[:-2]) == {
        ("User:alice", "ALLOW", "WRITE", "LITERAL", f"{topic}.replica"),
        ("User:bob", "DENY", "ALL", "LITERAL", f"{topic}.replica"),
        group,
    }


def test_a_source_that_was_built_anew_takes_no_permissions_away(
    guarded: KafkaClusters, flow: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    nyc.allow("alice", "READ", topic)
    sync(flow)
    # Any other cluster with none of these permissions will do.
    anew = dataclasses.replace(flow.topology.clusters[flow.flow.source], bootstrap_servers=flow.target_servers)
    clusters = {**flow.topology.clusters, flow.flow.source: anew}
    rebuilt = dataclasses.replace(flow, topology=dataclasses.replace(flow.topology, clusters=clusters))

    found = [sync(rebuilt), sync(rebuilt)]
    kept = lon.acls(flow.twin(topic))
    approved = sync(rebuilt, approved=True)

    for result in found:
        assert [row for row in rows(result) if row[0] == "remove acl"] == []
        (sentence,) = [failure for failure in result.failed if "another one than" in failure]
        assert "so 1 ACLs and 0 quotas that it does not have stay there" in sentence
    assert {who for who, *_ in kept} == {"User:alice"}
    assert ("remove acl", f"topic {flow.twin(topic)}", "User:alice", "ALLOW READ from *", None) in rows(approved)
    assert lon.acls(flow.twin(topic)) == set()


def test_what_is_revoked_does_not_come_back_from_the_other_side(flow: Twins, topic: str, nyc: Hand, lon: Hand) -> None:
    there = flow.with_settings(naming="identity")
    back = opposite(there)
    nyc.allow("alice", "READ", topic)
    sync(there)
    granted = lon.acls(topic)

    nyc.revoke("alice", "READ", topic)
    for _ in range(2):
        sync(back)
        sync(there)

    assert granted == {("User:alice", "ALLOW", "READ", "LITERAL", topic)}
    assert (nyc.acls(topic), lon.acls(topic)) == (set(), set())


def test_quotas_are_copied_in_full_mode_and_users_are_listed(flow: Twins, topic: str, nyc: Hand) -> None:
    migrating = flow.with_settings(sync_topic_acls_mode="full")
    quota = Quota((("user", topic),), "producer_byte_rate")
    set_quota(flow, "source", quota, 1024.0)

    listed = sync(flow)
    copied = sync(migrating)

    assert ("user " + topic, "producer_byte_rate", 1024.0, None) in [
        (row.entity, row.key, row.value, row.on_target) for row in listed.quotas
    ]
    assert [(user.user, user.on_target) for user in listed.scram_users] == [("alice", False), (MIRROR, True)]
    assert quota_rows(copied) == [("set quota", f"user {topic}", "producer_byte_rate", None, "1024")]
    assert any("must be given theirs" in note and "alice" in note for note in copied.notes)
    await_condition(lambda: quotas(flow, "target").get(quota) == 1024.0, "the quota on the target")
    assert quota_rows(sync(migrating)) == []
    set_quota(flow, "source", quota, None)
    assert quota_rows(sync(migrating)) == [("remove quota", f"user {topic}", "producer_byte_rate", "1024", None)]


def test_a_quota_of_the_mirror_stays_where_it_is_and_one_for_everybody_is_said(flow: Twins, nyc: Hand) -> None:
    migrating = flow.with_settings(sync_topic_acls_mode="full")
    ours, everybody_s = (Quota((("user", user),), "producer_byte_rate") for user in ("ANONYMOUS", None))
    for quota in (ours, everybody_s):
        set_quota(flow, "source", quota, 1e12)

    copied = sync(migrating)
    for quota in (ours, everybody_s):
        set_quota(flow, "source", quota, None)
    removed = sync(migrating)

    everybody = "user (default)"
    assert quota_rows(copied) == [("set quota", everybody, "producer_byte_rate", None, "1e+12")]
    assert quota_rows(removed) == [("remove quota", everybody, "producer_byte_rate", "1e+12", None)]
    (said,) = [note for note in copied.notes if "slow it down" in note]
    assert said.startswith("these quotas of the source will hold for User:ANONYMOUS, which is Twinlog, on cluster ")
    assert said.endswith(f"which are left alone: producer_byte_rate of {everybody}")


def quotas(flow: Twins, side: str) -> Mapping[Quota, float]:
    with flow_access(flow.topology, flow.flow, side).raw() as client:
        return client.run(read_quotas(client)).quotas


def set_quota(flow: Twins, side: str, quota: Quota, value: float | None) -> None:
    before = quotas(flow, side).get(quota)
    with flow_access(flow.topology, flow.flow, side).raw() as client:
        assert client.run(change_quotas(client, [QuotaChange(quota, before, value)])) == {}
    await_condition(lambda: quotas(flow, side).get(quota) == value, "the quota changed")


def quota_rows(result: SyncResult) -> list[tuple[str, str, str, str | None, str | None]]:
    """Without the ACLs that other tests have left."""
    return [row for row in rows(result) if "quota" in row[0]]


def test_a_target_that_would_delete_old_records_is_told_to_keep_them(
    flow: Twins, topic: str, nyc: Hand, lon: Hand
) -> None:
    an_hour_ago_ms = int((time.time() - 3600) * 1000)
    writer = producer(flow.source_servers)
    writer.produce(topic, "old", timestamp=an_hour_ago_ms)
    writer.flush()

    (said,) = [change for change in sync(flow, dry_run=True).changes if change.name == "retention.ms"]
    flow.mirror()
    # Without the setting, retention would have deleted the record by the time a record of a later run is there.
    bare = f"{topic}-bare"
    lon.create(bare)
    alone = producer(flow.target_servers)
    alone.produce(bare, "old", timestamp=an_hour_ago_ms)
    alone.flush()
    await_condition(lambda: read_committed(flow.target_servers, bare) == {0: []}, "retention on the target")

    assert (said.resource, said.after) == (flow.twin(topic), "604800000")
    assert said.note == "the source's; the target's default of 60000 would delete mirrored records"
    assert [record.value for record in flow.read_target(topic)[0]] == [b"old"]
