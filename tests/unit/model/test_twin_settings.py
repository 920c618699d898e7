from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.model.filters import config_filter
from twinlog.model.flow import Flow
from twinlog.model.twin_settings import MIN_IN_SYNC, MOST, TWIN_SETTINGS, SettingChange, SettingRules, TopicSettings

DEFAULTS = {
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "max.message.bytes": "1048588",
    "cleanup.policy": "delete",
    "segment.bytes": "1073741824",
    "flush.ms": MOST,
    "min.insync.replicas": "1",
    "compression.type": "producer",
    "unclean.leader.election.enable": "false",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": MOST,
    "message.timestamp.after.max.ms": "3600000",
}
OWN = {key: value for key, value in TWIN_SETTINGS.items() if key in DEFAULTS}
FLOW = Flow("nyc", "lon")


def settings(**overrides: str) -> TopicSettings:
    named = {key.replace("_", "."): value for key, value in overrides.items()}
    return TopicSettings(named, {**DEFAULTS, **named})


def rules(*, defaults_from_source: bool = False, target_defaults: dict[str, str] | None = DEFAULTS) -> SettingRules:
    return SettingRules(
        config_filter(FLOW).accepts, defaults_from_source=defaults_from_source, target_defaults=target_defaults
    )


def test_only_overrides_travel_and_the_twin_keeps_its_own() -> None:
    source = settings(segment_bytes="100", compression_type="zstd", message_timestamp_type="LogAppendTime")

    assert rules().wanted(source, 1).values == {**OWN, "segment.bytes": "100"}


def test_what_the_flow_excludes_stays_behind() -> None:
    source = settings(unclean_leader_election_enable="true", min_insync_replicas="3")

    assert rules().wanted(source, 1).values == OWN


def test_with_the_source_s_defaults_everything_is_written_out() -> None:
    wanted = rules(defaults_from_source=True).wanted(settings(), 1).values

    assert wanted == {
        **{key: value for key, value in DEFAULTS.items() if config_filter(FLOW).accepts(key)},
        **OWN,
    }


@pytest.mark.parametrize(
    ("key", "source", "target", "written"),
    [
        ("retention.ms", "2592000000", "604800000", True),
        ("retention.ms", "-1", "604800000", True),
        ("retention.ms", "604800000", "-1", False),
        ("retention.ms", "604800000", "604800000", False),
        ("retention.bytes", "-1", "1000", True),
        ("max.message.bytes", "2000000", "1048588", True),
        ("max.message.bytes", "1000", "1048588", False),
        ("cleanup.policy", "delete", "compact", True),
        ("cleanup.policy", "compact", "delete", True),
        ("cleanup.policy", "compact,delete", "delete,compact", False),
    ],
)
def test_a_limit_of_the_source_that_is_wider_than_the_target_s_default_is_written_out_and_said(
    key: str, source: str, target: str, written: bool
) -> None:
    here = TopicSettings({}, {**DEFAULTS, key: source})
    found = rules(target_defaults={**DEFAULTS, key: target}).wanted(here, 1)

    assert (found.values.get(key) == source) is written
    assert (key in found.notes) is written


def test_a_limit_that_the_flow_excludes_stays_behind_and_is_named_as_a_trap() -> None:
    excluding = SettingRules(lambda key: key != "retention.ms", defaults_from_source=False, target_defaults=DEFAULTS)
    found = excluding.wanted(TopicSettings({}, {**DEFAULTS, "retention.ms": "-1"}), 1)

    assert "retention.ms" not in found.values
    assert found.traps == ("retention.ms",)


def test_retention_of_a_compacted_topic_is_no_trap() -> None:
    here = TopicSettings({"cleanup.policy": "compact"}, {**DEFAULTS, "cleanup.policy": "compact", "retention.ms": "-1"})

    assert "retention.ms" not in rules().wanted(here, 1).values


def test_where_the_target_s_defaults_are_not_known_the_source_s_limits_are_written_out() -> None:
    wanted = rules(target_defaults=None).wanted(settings(), 1).values

    assert {key: wanted[key] for key in ("retention.ms", "retention.bytes", "max.message.bytes")} == {
        "retention.ms": "604800000",
        "retention.bytes": "-1",
        "max.message.bytes": "1048588",
    }


def test_a_setting_that_the_target_does_not_know_is_named_and_not_written() -> None:
    found = rules().wanted(settings(message_format_version="2.8"), 1)

    assert found.unknown == ("message.format.version",)
    assert "message.format.version" not in found.values


def test_a_target_before_kafka_4_gets_its_own_form_of_the_timestamp_limit() -> None:
    older = {**DEFAULTS, "message.timestamp.difference.max.ms": MOST}

    assert rules(target_defaults=older).wanted(settings(), 1).values["message.timestamp.difference.max.ms"] == MOST


@pytest.mark.parametrize(
    ("carried", "replicas", "wanted"),
    [(None, 3, "2"), ("3", 3, "3"), ("1", 3, "2"), (None, 2, None), ("2", 2, "2"), ("2", 1, None), (None, -1, None)],
)
def test_two_of_three_replicas_must_have_a_record(carried: str | None, replicas: int, wanted: str | None) -> None:
    everything = SettingRules(lambda _: True, defaults_from_source=False, target_defaults=DEFAULTS)
    source = settings(**({} if carried is None else {"min_insync_replicas": carried}))

    assert everything.wanted(source, replicas).values.get(MIN_IN_SYNC) == wanted


def test_differences_are_set_and_reset_and_excluded_settings_are_left_alone() -> None:
    found = rules()
    wanted = found.wanted(settings(segment_bytes="100"), 1)
    now = TopicSettings({**OWN, "flush.ms": "5", "unclean.leader.election.enable": "true"}, DEFAULTS)

    assert list(found.differences("t", wanted, now)) == [
        SettingChange("t", "segment.bytes", None, "100"),
        SettingChange("t", "flush.ms", "5", None),
    ]


def test_more_replicas_in_sync_than_needed_are_left_alone() -> None:
    found = rules()
    wanted = found.wanted(settings(), 3)
    now = TopicSettings({**OWN, MIN_IN_SYNC: "3"}, {**DEFAULTS, MIN_IN_SYNC: "3"})

    assert list(found.differences("t", wanted, now)) == []


OVERRIDES = st.dictionaries(
    st.sampled_from(["retention.ms", "segment.bytes", "flush.ms", "cleanup.policy", "compression.type", MIN_IN_SYNC]),
    st.sampled_from(["1", "2", "3"]),
)


@given(OVERRIDES, OVERRIDES, st.integers(1, 4), st.booleans(), st.booleans())
def test_after_the_differences_are_made_there_are_none(
    source: dict[str, str], target: dict[str, str], replicas: int, from_source: bool, everything: bool
) -> None:
    accepts = (lambda _: True) if everything else config_filter(FLOW).accepts
    found = SettingRules(accepts, defaults_from_source=from_source, target_defaults=DEFAULTS)
    wanted = found.wanted(TopicSettings(source, {**DEFAULTS, **source}), replicas)
    now = TopicSettings(target, {**DEFAULTS, **target})

    changes = list(found.differences("t", wanted, now))
    made = {**target, **{change.name: change.after for change in changes if change.after is not None}}
    for change in changes:
        if change.after is None:
            del made[change.name]

    assert len({change.name for change in changes}) == len(changes)
    assert all(change.before == target.get(change.name) for change in changes)
    assert list(found.differences("t", wanted, replace(now, overrides=made, effective={**DEFAULTS, **made}))) == []


def test_while_a_migration_holds_nothing_of_a_twin_goes_for_its_age_and_then_the_source_s_settings_are_back() -> None:
    def planned(*, holds: bool) -> SettingRules:
        accepts = config_filter(Flow("nyc", "lon", config_properties_exclude=("retention.bytes",))).accepts
        known = {**DEFAULTS, "min.compaction.lag.ms": "0", "max.compaction.lag.ms": MOST}
        return SettingRules(accepts, defaults_from_source=False, target_defaults=known, holds=holds)

    source = settings(retention_ms="1000", cleanup_policy="compact,delete")
    held = planned(holds=True).wanted(source, 1).values
    now = TopicSettings(held, {**DEFAULTS, **held})

    changes = list(planned(holds=False).differences("orders", planned(holds=False).wanted(source, 1), now))

    assert held == {
        **OWN,
        "cleanup.policy": "compact,delete",
        "retention.ms": "-1",
        "min.compaction.lag.ms": MOST,
        "max.compaction.lag.ms": MOST,
    }
    assert {(change.name, change.after) for change in changes} == {
        ("retention.ms", "1000"),
        ("min.compaction.lag.ms", None),
        ("max.compaction.lag.ms", None),
    }
