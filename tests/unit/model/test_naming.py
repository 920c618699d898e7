"""Names there and back, hops, and which topics are internal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.errors import TopologyError
from twinlog.model import naming
from twinlog.model.flow import Flow

ALIASES = frozenset({"nyc", "lon", "ber"})
topics = st.from_regex(r"[A-Za-z0-9._-]{1,40}", fullmatch=True) | st.sampled_from(
    ["heartbeats", "nyc.heartbeats", "nyc.nyc.heartbeats", "ber_heartbeats"]
)
flows = st.builds(
    Flow,
    st.sampled_from(["nyc", "lon"]),
    st.just("ber"),
    naming=st.sampled_from(["prefixed", "identity", "custom"]),
    naming_format=st.sampled_from(["${topic}.replica", "${source}-${topic}", "all.${topic}_of_${source}"]),
    replication_policy_separator=st.sampled_from([".", "_", "--"]),
)


@given(flows, topics)
def test_a_name_comes_back_unchanged(flow: Flow, topic: str) -> None:
    policy = naming.policy_of(flow)
    assert policy.source_name(policy.target_name(topic)) == topic


@given(flows, topics, topics)
def test_no_two_topics_share_a_name(flow: Flow, one: str, other: str) -> None:
    policy = naming.policy_of(flow)
    assert (policy.target_name(one) == policy.target_name(other)) == (one == other)


@given(flows, topics)
def test_a_name_that_the_policy_did_not_make_has_no_source_name(flow: Flow, topic: str) -> None:
    policy = naming.policy_of(flow)
    before = policy.source_name(topic)
    assert before is None or policy.target_name(before) == topic


@given(st.lists(st.sampled_from(sorted(ALIASES)), max_size=5))
def test_hops_are_the_aliases_that_were_put_in_front(path: list[str]) -> None:
    name = "orders"
    for alias in path:
        name = naming.Prefixed(f"{alias}.").target_name(name)
    assert naming.hops(name, ALIASES) == tuple(reversed(path))
    assert naming.original_topic(name, ALIASES) == "orders"


def test_only_known_aliases_are_hops() -> None:
    assert naming.hops("prod.lon.orders", ALIASES) == ()
    assert naming.hops("nyc.prod.lon.orders", ALIASES) == ("nyc",)
    assert naming.hops("nyc.", ALIASES) == ()
    assert naming.original_topic("nyc_lon_orders", ALIASES, "_") == "orders"


def test_overlapping_texts_of_a_format_are_not_taken_twice() -> None:
    assert naming.Custom("aba", "aba").source_name("aba") is None


@pytest.mark.parametrize(
    "topic",
    [
        "__consumer_offsets",
        "__transaction_state",
        ".hidden",
        "mm2-offset-syncs.lon.internal",
        "mm2-configs.nyc.internal",
        "nyc.checkpoints.internal",
        "twinlog.nyc.lon.journal.internal",
    ],
)
def test_internal_topics(topic: str) -> None:
    assert naming.is_internal(topic)


@pytest.mark.parametrize(
    "topic", ["orders", "orders.internal", "orders-internal", "heartbeats", "nyc.heartbeats", "twinlog.canary", "mm2"]
)
def test_topics_that_are_not_internal(topic: str) -> None:
    assert not naming.is_internal(topic)


def test_mm2_internal_topics_with_another_separator() -> None:
    assert naming.is_internal("nyc_checkpoints_internal", "_")
    assert naming.is_internal("mm2-offset-syncs_lon_internal", "_")
    assert naming.is_internal("nyc.checkpoints.internal", "_")


def test_names_of_internal_topics() -> None:
    flow = Flow("nyc", "lon")
    assert naming.offset_syncs_topic(flow) == "mm2-offset-syncs.lon.internal"
    assert naming.checkpoints_topic(flow) == "nyc.checkpoints.internal"
    there = Flow("nyc", "lon", offset_syncs_topic_location="target", replication_policy_separator="_")
    assert naming.offset_syncs_topic(there) == "mm2-offset-syncs_nyc_internal"


def test_heartbeats_tell_where_they_came_from_even_where_names_are_kept() -> None:
    policy = naming.policy_of(Flow("nyc", "lon", naming="identity"))
    assert policy.target_name("heartbeats") == "nyc.heartbeats"
    assert policy.target_name("device.heartbeats") == "device.heartbeats"
    assert policy.source_name("heartbeats") is None, "the target's own"


def test_heartbeats_are_recognised_through_hops() -> None:
    assert naming.is_heartbeats("heartbeats", ALIASES)
    assert naming.is_heartbeats("nyc.lon.heartbeats", ALIASES)
    assert not naming.is_heartbeats("prod.heartbeats", ALIASES)


def test_custom_naming_needs_a_format() -> None:
    with pytest.raises(TopologyError, match=r"nyc->lon: naming custom needs a naming\.format"):
        naming.policy_of(Flow("nyc", "lon", naming="custom"))


def test_topic_names_that_kafka_allows() -> None:
    assert naming.is_topic_name("a" * 249)
    assert not any(map(naming.is_topic_name, ("", ".", "..", "a b", "a" * 250, "a\n")))
