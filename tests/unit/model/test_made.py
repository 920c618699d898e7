from __future__ import annotations

from uuid import UUID

import pytest

from twinlog.errors import FlowStateError
from twinlog.model.acls import Acl, Pattern
from twinlog.model.made import FoundTopic, Made, MadeTopic, Remembered, from_values, made_topic, to_values
from twinlog.model.naming import is_internal
from twinlog.model.quotas import Quota, QuotaChange, QuotaDifference, compare_quotas

ACL = Acl("topic", 'odd " name', Pattern.PREFIXED, "User:a b", "*", "READ", "DENY")
QUOTA = Quota((("client-id", None), ("user", "alice")), "producer_byte_rate")
TOPIC = MadeTopic(UUID(int=1), "orders", UUID(int=2), "cluster", 5)
HELD = {"nyc.orders": {"compression.type": "zstd"}}
FOUND = {"nyc.found": FoundTopic(UUID(int=3), UUID(int=4))}
MADE = Made({"nyc.orders": TOPIC}, frozenset({ACL}), frozenset({QUOTA}), 7, 8, "c", HELD, frozenset({ACL}), FOUND)


def test_memory_survives_being_written_and_read() -> None:
    assert from_values(to_values(MADE), "here") == MADE
    assert from_values({}, "here") == Made()
    assert from_values({**to_values(MADE), "something newer": b"{}"}, "here") == MADE


def test_memory_that_is_damaged_is_an_error_that_says_where() -> None:
    with pytest.raises(FlowStateError, match=r"^here: what Twinlog has made can't be read"):
        from_values({"topic nyc.orders": b"{}"}, "here")


def test_things_are_added_to_memory_and_taken_from_it() -> None:
    after = Remembered({"nyc.orders": None, "nyc.b": TOPIC}, no_acls=frozenset({ACL}), acls_compared_ms=9).added_to(
        MADE
    )

    assert after == Made({"nyc.b": TOPIC}, frozenset(), frozenset({QUOTA}), 7, 9, "c", HELD, frozenset({ACL}), FOUND)


def test_what_is_held_back_is_forgotten_when_the_source_has_it_no_longer() -> None:
    other = {"nyc.b": {"min.insync.replicas": "1"}}
    assert Remembered(held={"nyc.orders": {}, **other}, withheld=frozenset()).added_to(MADE) == Made(
        {"nyc.orders": TOPIC}, frozenset({ACL}), frozenset({QUOTA}), 7, 8, "c", other, found=FOUND
    )


def test_settings_are_known_of_the_very_topic_that_was_made_or_found() -> None:
    assert MADE.settings_known("nyc.orders", TOPIC.target_id)
    assert MADE.settings_known("nyc.found", UUID(int=3))
    assert not MADE.settings_known("nyc.orders", UUID(int=3))
    assert not MADE.settings_known("nyc.found", None)
    assert not MADE.settings_known("nyc.other", UUID(int=3))
    assert MADE.source_ids == {"nyc.orders": UUID(int=2), "nyc.found": UUID(int=4)}


def test_the_topic_that_holds_it_is_never_mirrored() -> None:
    assert is_internal(made_topic("nyc", "lon"))


def test_a_quota_that_somebody_else_set_on_the_target_stays() -> None:
    assert compare_quotas({QUOTA: 1.0}, {}, frozenset()).changes == (QuotaChange(QUOTA, None, 1.0),)
    assert compare_quotas({QUOTA: 1.0}, {QUOTA: 2.0}, frozenset()).changes == ()
    assert compare_quotas({QUOTA: 1.0}, {QUOTA: 2.0}, frozenset({QUOTA})).changes == (QuotaChange(QUOTA, 2.0, 1.0),)
    assert compare_quotas({}, {QUOTA: 2.0}, frozenset()).changes == ()
    assert compare_quotas({}, {QUOTA: 2.0}, frozenset({QUOTA})).changes == (QuotaChange(QUOTA, 2.0, None),)


@pytest.mark.parametrize(
    ("entity", "of_mirror", "for_everybody"),
    [
        ((("user", "mirror"),), True, False),
        ((("client-id", "app"), ("user", "mirror")), True, False),
        ((("user", "alice"),), False, False),
        ((("user", None),), False, True),
        ((("client-id", None),), False, True),
        ((("client-id", None), ("user", None)), False, True),
        ((("client-id", "app"), ("user", None)), False, False),
        ((("ip", None),), False, False),
    ],
)
def test_whom_a_quota_limits(entity: tuple[tuple[str, str | None], ...], of_mirror: bool, for_everybody: bool) -> None:
    quota = Quota(entity, "producer_byte_rate")

    assert (quota.is_of("mirror"), quota.is_for_everybody) == (of_mirror, for_everybody)


def test_a_quota_that_is_neither_there_nor_wanted_is_forgotten() -> None:
    made = frozenset({QUOTA})

    assert compare_quotas({}, {}, made) == QuotaDifference((), forget=made)
    assert compare_quotas({QUOTA: 1.0}, {}, made).forget == frozenset()
    assert compare_quotas({}, {QUOTA: 1.0}, made).forget == frozenset()
