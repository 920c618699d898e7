"""The flow's settings: MirrorMaker 2's defaults, attribute names, and the digest."""

from __future__ import annotations

import dataclasses

import pytest

from twinlog.model.flow import Flow
from twinlog.model.settings import settings_of

# As MirrorSourceConfig, MirrorCheckpointConfig and MirrorHeartbeatConfig of Kafka 4.3.1 print them.
MM2_DEFAULTS = {
    "topics": ".*",
    "topics.exclude": r"mm2.*\.internal,.*\.replica,__.*",
    "groups": ".*",
    "groups.exclude": "console-consumer-.*,connect-.*,__.*",
    "config.properties.exclude": "follower.replication.throttled.replicas,leader.replication.throttled.replicas,"
    "message.timestamp.difference.max.ms,log.message.timestamp.before.max.ms,log.message.timestamp.after.max.ms,"
    "message.timestamp.type,unclean.leader.election.enable,min.insync.replicas",
    "use.defaults.from": "target",
    "replication.factor": "2",
    "replication.policy.separator": ".",
    "refresh.topics.enabled": "true",
    "refresh.topics.interval.seconds": "600",
    "refresh.groups.enabled": "true",
    "refresh.groups.interval.seconds": "600",
    "sync.topic.configs.enabled": "true",
    "sync.topic.configs.interval.seconds": "600",
    "sync.topic.acls.enabled": "true",
    "sync.topic.acls.interval.seconds": "600",
    "sync.group.offsets.enabled": "false",
    "sync.group.offsets.interval.seconds": "60",
    "emit.heartbeats.enabled": "true",
    "emit.heartbeats.interval.seconds": "1",
    "heartbeats.replication.enabled": "true",
    "emit.checkpoints.enabled": "true",
    "emit.checkpoints.interval.seconds": "60",
    "emit.offset-syncs.enabled": "true",
    "offset-syncs.topic.location": "source",
    "offset-syncs.topic.replication.factor": "3",
    "checkpoints.topic.replication.factor": "3",
    "heartbeats.topic.replication.factor": "3",
}


def test_the_defaults_of_mirrormaker_2() -> None:
    ours = {item.name: item for item in settings_of(Flow).values() if item.mm2 and item.name != "enabled"}
    assert {name: ours[name].kind.parse(text) for name, text in MM2_DEFAULTS.items()} == {
        name: item.default for name, item in ours.items()
    }


def test_a_listed_flow_is_enabled_unlike_in_mirrormaker_2() -> None:
    assert Flow("a", "b").enabled


def test_every_setting_is_an_attribute_explained_and_has_a_default_of_its_kind() -> None:
    flow = Flow("a", "b")
    for item in settings_of(Flow).values():
        assert getattr(flow, item.attribute) == item.default
        assert item.doc.endswith((".", "..."))
        if item.default is not None and not isinstance(item.default, tuple):
            assert item.kind.parse(str(item.default)) == item.default


def test_no_name_or_alias_is_used_twice() -> None:
    keys = [key for item in settings_of(Flow).values() for key in (item.name, *item.aliases)]
    assert len(keys) == len(set(keys))


def test_the_digest_changes_with_settings_and_not_with_secrets() -> None:
    flow = Flow("a", "b", overrides={"consumer.client.id": "x", "consumer.sasl.password": "${env:A}"})
    same = dataclasses.replace(flow, overrides={**flow.overrides, "consumer.sasl.password": "${env:B}"})
    assert flow.digest == same.digest
    others = [
        dataclasses.replace(flow, lanes=9),
        dataclasses.replace(flow, overrides={}),
        dataclasses.replace(flow, target="c"),
    ]
    assert len({flow.digest, *(other.digest for other in others)}) == 4


def test_a_flow_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Flow("a", "b").lanes = 3  # type: ignore[misc]
