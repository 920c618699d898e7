from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.model.acls import Acl, AclDifference, AclMode, AclRules, Pattern, WantedAcls, compare_acls, wanted_acls
from twinlog.model.naming import Custom, Identity, NamingPolicy, Prefixed

TOPICS = ["orders", "prod.a", "prod.b"]
PREFIXED, IDENTITY, SUFFIXED, UNCHANGED = Prefixed("nyc."), Identity(), Custom("", ".replica"), Custom("", "")
READ = Acl("topic", "orders", Pattern.LITERAL, "User:alice", "*", "READ", "ALLOW")


def rules(policy: NamingPolicy = PREFIXED, mode: AclMode = AclMode.SAFE) -> AclRules:
    return AclRules(mode, policy, TOPICS.__contains__, lambda group: group.startswith("g"), TOPICS, "User:mirror")


def wanted(acl: Acl, policy: NamingPolicy = PREFIXED, mode: AclMode = AclMode.SAFE) -> set[Acl]:
    return set(wanted_acls([acl], rules(policy, mode)).acls)


def test_a_topic_s_permission_is_on_its_twin() -> None:
    assert wanted(READ) == {replace(READ, resource_name="nyc.orders")}
    assert wanted(replace(READ, resource_name="not mirrored")) == set()


def test_safe_mode_lets_nobody_write_and_denials_travel() -> None:
    assert wanted(replace(READ, operation="WRITE")) == set()
    assert wanted(replace(READ, operation="ALL")) == {replace(READ, resource_name="nyc.orders")}
    for operation in ("ALL", "WRITE", "READ"):
        denied = replace(READ, operation=operation, permission="DENY")
        assert wanted(denied) == {replace(denied, resource_name="nyc.orders")}


def test_full_mode_takes_writing_groups_and_transactional_ids() -> None:
    full = AclMode.FULL
    writing = replace(READ, operation="WRITE")
    group = replace(READ, resource_type="group", resource_name="g1")
    transactional = replace(READ, resource_type="transactional-id", resource_name="t1")

    assert wanted(writing, mode=full) == {replace(writing, resource_name="nyc.orders")}
    assert wanted(group, mode=full) == {group}
    assert wanted(transactional, mode=full) == {transactional}
    assert wanted(replace(group, resource_name="other"), mode=full) == set()
    assert wanted(replace(READ, resource_type="cluster", resource_name="kafka-cluster"), mode=full) == set()
    assert wanted(group) == wanted(transactional) == set()


@pytest.mark.parametrize(("resource_type", "name"), [("group", "twinlog."), ("transactional-id", "twinlog.lon->nyc.0")])
def test_what_twinlog_may_do_on_the_source_is_granted_to_nobody_on_the_target(resource_type: str, name: str) -> None:
    own = replace(READ, resource_type=resource_type, resource_name=name, pattern=Pattern.PREFIXED)
    assert wanted(own, mode=AclMode.FULL) == set()
    assert wanted(replace(own, resource_name=name[:-1], permission="DENY"), mode=AclMode.FULL)


@pytest.mark.parametrize(
    ("policy", "names", "pattern"),
    [
        (PREFIXED, {"nyc.prod."}, Pattern.PREFIXED),
        (IDENTITY, {"prod.a", "prod.b"}, Pattern.LITERAL),
        (UNCHANGED, {"prod.a", "prod.b"}, Pattern.LITERAL),
        (SUFFIXED, {"prod.a.replica", "prod.b.replica"}, Pattern.LITERAL),
        (Custom("all.", ""), {"all.prod.a", "all.prod.b"}, Pattern.LITERAL),
    ],
)
def test_a_prefix_covers_no_name_that_the_flow_does_not_make(
    policy: NamingPolicy, names: set[str], pattern: Pattern
) -> None:
    acl = replace(READ, resource_name="prod.", pattern=Pattern.PREFIXED)

    assert {(one.resource_name, one.pattern) for one in wanted(acl, policy)} == {(name, pattern) for name in names}
    assert wanted(replace(acl, resource_name="prod.x"), policy) == set()


def test_full_mode_keeps_a_prefix_under_the_same_names() -> None:
    acl = replace(READ, resource_name="prod.", pattern=Pattern.PREFIXED)

    assert wanted(acl, IDENTITY, AclMode.FULL) == {acl}
    assert wanted(acl, Custom("all.", ""), AclMode.FULL) == {replace(acl, resource_name="all.prod.")}


@pytest.mark.parametrize("principal", ["User:*", "User:mirror"])
@pytest.mark.parametrize("mode", AclMode)
def test_a_denial_that_hits_twinlog_itself_stays_behind_and_is_told(principal: str, mode: AclMode) -> None:
    denied = replace(READ, principal=principal, operation="WRITE", permission="DENY")
    there = replace(denied, resource_name="nyc.orders")

    assert wanted_acls([denied], rules(mode=mode)) == WantedAcls(frozenset(), (there,))


def test_what_everybody_is_denied_on_the_source_nobody_is_allowed_on_the_target() -> None:
    denied = replace(READ, principal="User:*", permission="DENY")
    every = replace(READ, resource_name="*", principal="User:bob")
    describe = replace(READ, operation="DESCRIBE")

    assert wanted_acls([denied, READ, every, describe], rules()).acls == {
        replace(every, resource_name="nyc.prod.a"),
        replace(every, resource_name="nyc.prod.b"),
        replace(describe, resource_name="nyc.orders"),
    }


def test_full_mode_allows_nobody_a_group_that_everybody_is_denied() -> None:
    denied = replace(READ, resource_type="group", resource_name="g1", principal="User:*", permission="DENY")
    named, other = (replace(READ, resource_type="group", resource_name=name) for name in ("g1", "g2"))
    every = replace(named, resource_name="*")

    found = wanted_acls([denied, named, other, every], rules(mode=AclMode.FULL))

    assert found == WantedAcls(frozenset({other}), (denied,))


def test_full_mode_denies_twinlog_none_of_its_own_transactional_ids() -> None:
    denied = replace(READ, resource_type="transactional-id", principal="User:*", operation="WRITE", permission="DENY")
    for name, pattern, carried in (
        ("*", Pattern.LITERAL, False),
        ("twin", Pattern.PREFIXED, False),
        ("twinlog.nyc", Pattern.PREFIXED, False),
        ("payments", Pattern.LITERAL, True),
    ):
        acl = replace(denied, resource_name=name, pattern=pattern)
        assert wanted(acl, mode=AclMode.FULL) == ({acl} if carried else set())


def test_what_somebody_removed_and_nobody_wants_is_forgotten() -> None:
    removed_by_hand = compare_acls(frozenset(), frozenset(), frozenset({READ}))

    assert removed_by_hand == AclDifference((), (), forget=frozenset({READ}))
    # Wanted still, it is added again, and is Twinlog's as it was.
    assert compare_acls(frozenset({READ}), frozenset(), frozenset({READ})) == AclDifference((READ,), ())


def test_a_permission_on_all_topics_is_one_on_all_twins() -> None:
    every = replace(READ, resource_name="*")

    assert wanted(every) == {replace(every, resource_name="nyc.", pattern=Pattern.PREFIXED)}
    assert wanted(every, IDENTITY) == {replace(every, resource_name=topic) for topic in TOPICS}
    assert wanted(every, IDENTITY, AclMode.FULL) == {every}
    assert wanted(every, SUFFIXED) == {replace(every, resource_name=f"{topic}.replica") for topic in TOPICS}


NAMES = st.sampled_from(["orders", "prod.a", "prod.", "pr", "*", "elsewhere", "nyc.orders"])
ACLS = st.frozensets(
    st.builds(
        Acl,
        resource_type=st.sampled_from(["topic", "group", "cluster", "transactional-id"]),
        resource_name=NAMES,
        pattern=st.sampled_from(Pattern),
        principal=st.sampled_from(["User:alice", "User:bob"]),
        host=st.just("*"),
        operation=st.sampled_from(["READ", "WRITE", "ALL", "DESCRIBE"]),
        permission=st.sampled_from(["ALLOW", "DENY"]),
    ),
    max_size=12,
)
POLICIES = st.sampled_from([PREFIXED, IDENTITY, SUFFIXED])


@given(ACLS, POLICIES)
def test_safe_mode_allows_nobody_to_write_whatever_the_source_allows(
    source: frozenset[Acl], policy: NamingPolicy
) -> None:
    for acl in wanted_acls(source, rules(policy)).acls:
        assert acl.resource_type == "topic"
        assert acl.permission == "DENY" or acl.operation not in ("WRITE", "ALL")


@given(ACLS, POLICIES, st.sampled_from(AclMode), st.sampled_from(TOPICS))
def test_a_denial_on_a_topic_is_one_on_its_twin(
    source: frozenset[Acl], policy: NamingPolicy, mode: AclMode, topic: str
) -> None:
    def denied(acls: frozenset[Acl], name: str) -> set[tuple[str, str]]:
        return {
            (acl.principal, acl.operation)
            for acl in acls
            if acl.resource_type == "topic" and acl.permission == "DENY" and acl.covers(name)
        }

    there = denied(wanted_acls(source, rules(policy, mode)).acls, policy.target_name(topic))
    assert denied(source, topic) <= there


@given(ACLS, ACLS, ACLS)
def test_only_what_twinlog_made_is_removed_and_a_second_sync_finds_nothing(
    asked: frozenset[Acl], target: frozenset[Acl], made: frozenset[Acl]
) -> None:
    found = compare_acls(asked, target, made)
    after = (target | set(found.add)) - set(found.remove)

    assert set(found.remove) <= made & target
    assert asked <= after
    assert (target - made) <= after
    again = compare_acls(asked, after, (made | set(found.add)) - set(found.remove))
    assert (again.add, again.remove) == ((), ())
