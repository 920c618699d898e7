"""A flow's settings that say what is mirrored and what it is called on the target."""

from __future__ import annotations

from dataclasses import dataclass

from twinlog.model.kinds import Choice, EntryPoint, Patterns, Separator, Text, TopicFormat
from twinlog.model.settings import setting

_SELECTION = "What is mirrored"
_NAMING = "Names on the target"


@dataclass(frozen=True, kw_only=True)
class SelectionSettings:
    """Which topics, groups and topic settings a flow takes."""

    topics: tuple[str, ...] = setting(
        "topics",
        (".*",),
        Patterns(),
        "Topics to mirror. A pattern must match the whole name.",
        section=_SELECTION,
        mm2=True,
    )
    topics_exclude: tuple[str, ...] = setting(
        "topics.exclude",
        (
            r"mm2.*\.internal",
            r".*\.replica",
            "__.*",
        ),
        Patterns(),
        "Topics not to mirror; stronger than `topics`. Kafka's, MirrorMaker 2's and Twinlog's internal "
        "topics are never mirrored, whatever stands here.",
        section=_SELECTION,
        mm2=True,
    )
    groups: tuple[str, ...] = setting(
        "groups",
        (".*",),
        Patterns(),
        "Consumer groups whose positions are translated.",
        section=_SELECTION,
        mm2=True,
    )
    groups_exclude: tuple[str, ...] = setting(
        "groups.exclude",
        (
            "console-consumer-.*",
            "connect-.*",
            "__.*",
        ),
        Patterns(),
        "Consumer groups to leave out; stronger than `groups`.",
        section=_SELECTION,
        mm2=True,
    )
    config_properties_exclude: tuple[str, ...] = setting(
        "config.properties.exclude",
        (
            "follower.replication.throttled.replicas",
            "leader.replication.throttled.replicas",
            "message.timestamp.difference.max.ms",
            "log.message.timestamp.before.max.ms",
            "log.message.timestamp.after.max.ms",
            "message.timestamp.type",
            "unclean.leader.election.enable",
            "min.insync.replicas",
        ),
        Patterns(),
        "Topic settings that do not travel.",
        section=_SELECTION,
        mm2=True,
    )
    topic_filter: str | None = setting(
        "topic.filter",
        None,
        EntryPoint(),
        "A Python class that decides which topics are mirrored, in place of `topics` and "
        "`topics.exclude`; called with the flow, its `accepts(topic)` answers true or false.",
        section=_SELECTION,
    )
    group_filter: str | None = setting(
        "group.filter",
        None,
        EntryPoint(),
        "A Python class that decides which groups are translated, in place of `groups` and "
        "`groups.exclude`; called with the flow, its `accepts(group)` answers true or false.",
        section=_SELECTION,
    )
    config_filter: str | None = setting(
        "config.filter",
        None,
        EntryPoint(),
        "A Python class that decides which topic settings travel, in place of "
        "`config.properties.exclude`; called with the flow, its `accepts(property)` answers true or "
        "false.",
        section=_SELECTION,
    )
    topics_from: str = setting(
        "topics.from",
        "earliest",
        Choice(("earliest", "latest")),
        "Where a topic or partition that has no position yet begins: at its first record, or after its last.",
        section=_SELECTION,
    )


@dataclass(frozen=True, kw_only=True)
class NamingSettings:
    """What a topic is called on the target."""

    naming: str = setting(
        "naming",
        "prefixed",
        Choice(("prefixed", "identity", "custom")),
        "`prefixed`: `orders` of nyc is `nyc.orders` on the target. `identity`: the same name on both "
        "sides. `custom`: as `naming.format` or `naming.policy` says.",
        section=_NAMING,
    )
    naming_format: str | None = setting(
        "naming.format",
        None,
        TopicFormat(),
        "The name on the target, such as `${topic}.replica`; `${source}` and `${target}` are the aliases. "
        "Only with `naming: custom`.",
        section=_NAMING,
    )
    naming_policy: str | None = setting(
        "naming.policy",
        None,
        EntryPoint(),
        "A Python class that names topics: called with the flow, it has `target_name(topic)` and "
        "`source_name(remote_topic)`. Only with `naming: custom`, in place of `naming.format`.",
        section=_NAMING,
    )
    schemas_topic: str | None = setting(
        "schemas.topic",
        None,
        Text(),
        "The Schema Registry's topic, usually `_schemas`: mirrored under its own name whatever `naming` says, and "
        "whether or not `topics` names it, so that schema ids mean the same on both sides. One way only.",
        section=_NAMING,
    )
    replication_policy_separator: str = setting(
        "replication.policy.separator",
        ".",
        Separator(),
        "What stands between alias and topic in prefixed names and in the names of MirrorMaker 2's internal topics.",
        section=_NAMING,
        mm2=True,
    )
