"""A flow's settings that keep topics, permissions and groups in step, and for its own internal topics."""

from __future__ import annotations

from dataclasses import dataclass

from twinlog.model.kinds import Boolean, Choice, Integer, ReplicationFactor
from twinlog.model.settings import setting

_SYNC = "Topics, settings and ACLs"
_GROUPS = "Consumer groups"
_SIGNS = "Heartbeats, checkpoints and internal topics"


@dataclass(frozen=True, kw_only=True)
class SyncSettings:
    """How the target's topics follow the source's."""

    refresh_topics_enabled: bool = setting(
        "refresh.topics.enabled",
        True,
        Boolean(),
        "Whether a run makes twins of new topics, and adds new partitions. Without, it keeps to the twins that there "
        "are once it has run, and `twinlog sync` makes the others. The flow's own heartbeats and canaries are always "
        "followed.",
        section=_SYNC,
        mm2=True,
    )
    refresh_topics_interval_seconds: int = setting(
        "refresh.topics.interval.seconds",
        600,
        Integer(1),
        "How often they are looked for, at the latest. Every run looks, since that costs a request: the flow's "
        "`schedule` says how often.",
        section=_SYNC,
        mm2=True,
    )
    replication_factor: int | str = setting(
        "replication.factor",
        2,
        ReplicationFactor(),
        "Replicas of topics created on the target: a number, `source` (as many as the source's topic has) "
        "or `target` (the target's default; -1 means the same).",
        section=_SYNC,
        mm2=True,
    )
    use_defaults_from: str = setting(
        "use.defaults.from",
        "target",
        Choice(("source", "target")),
        "Whose defaults hold for topic settings that are not overridden: with `source` they are written "
        "out on the target.",
        section=_SYNC,
        mm2=True,
    )
    sync_topic_configs_enabled: bool = setting(
        "sync.topic.configs.enabled",
        True,
        Boolean(),
        "Whether topic settings follow the source.",
        section=_SYNC,
        mm2=True,
        aliases=("sync.configs",),
    )
    sync_topic_configs_interval_seconds: int = setting(
        "sync.topic.configs.interval.seconds",
        600,
        Integer(1),
        "How often they are compared.",
        section=_SYNC,
        mm2=True,
    )
    sync_topic_acls_enabled: bool = setting(
        "sync.topic.acls.enabled",
        True,
        Boolean(),
        "Whether topic ACLs follow the source. Nobody but the mirror may write to mirrored topics, so "
        "write permissions do not travel and ALL becomes READ, as in MirrorMaker 2.",
        section=_SYNC,
        mm2=True,
        aliases=("sync.acls",),
    )
    sync_topic_acls_interval_seconds: int = setting(
        "sync.topic.acls.interval.seconds",
        600,
        Integer(1),
        "How often they are compared.",
        section=_SYNC,
        mm2=True,
    )
    sync_topic_acls_mode: str = setting(
        "sync.topic.acls.mode",
        "safe",
        Choice(("safe", "full")),
        "`full`, for migrations, copies ACLs as they are: write permissions, and those on groups and transactional ids "
        "too, and client quotas. Denials and prefixed patterns travel in both modes, with names translated. A denial "
        "that would hit the mirror itself on the target stays behind and is told. Where names stay the same, `safe` "
        "writes a pattern out topic by topic, so that it grants nothing on the target's own topics.",
        section=_SYNC,
    )
    sync_topic_deletes: bool = setting(
        "sync.topic.deletes",
        False,
        Boolean(),
        "Whether a topic deleted on the source is deleted on the target; never one that Twinlog did not create.",
        section=_SYNC,
    )
    sync_topic_deletes_grace_seconds: int = setting(
        "sync.topic.deletes.grace.seconds",
        7 * 24 * 3600,
        Integer(0),
        "How long a topic must have been gone from the source before it is deleted on the target without anybody's "
        "approval; `twinlog sync --yes` approves.",
        section=_SYNC,
    )


@dataclass(frozen=True, kw_only=True)
class GroupSettings:
    """How consumer groups' positions follow."""

    refresh_groups_enabled: bool = setting(
        "refresh.groups.enabled",
        True,
        Boolean(),
        "Whether new groups are looked for, which every pass over the groups does; without, a pass keeps to the groups "
        "that have checkpoints already, once there are any.",
        section=_GROUPS,
        mm2=True,
    )
    refresh_groups_interval_seconds: int = setting(
        "refresh.groups.interval.seconds",
        600,
        Integer(1),
        "How often they are looked for, at the latest. Every pass looks, since that costs a few requests a broker.",
        section=_GROUPS,
        mm2=True,
    )
    sync_group_offsets_enabled: bool = setting(
        "sync.group.offsets.enabled",
        False,
        Boolean(),
        "Whether translated positions are committed for the groups on the target: never for a group with active "
        "members there, nor over a newer position that the group made there itself; rewinds on the source are "
        "followed. Each is written to the checkpoints topic too, whatever `emit.checkpoints.enabled` says: by that "
        "Twinlog knows its own commits from the groups'.",
        section=_GROUPS,
        mm2=True,
        aliases=("sync.group.offsets",),
    )
    sync_group_offsets_interval_seconds: int = setting(
        "sync.group.offsets.interval.seconds",
        60,
        Integer(1),
        "How long a run leaves them out after the last time; `twinlog checkpoint` does it at once.",
        section=_GROUPS,
        mm2=True,
    )


@dataclass(frozen=True, kw_only=True)
class SignalSettings:
    """The topics by which a flow shows that it lives, in MirrorMaker 2's formats, and its journal."""

    emit_heartbeats_enabled: bool = setting(
        "emit.heartbeats.enabled",
        True,
        Boolean(),
        "Whether every run writes a heartbeat to the source; its age on the target is the flow's measured recovery "
        "point. `twinlog heartbeat` writes one between runs.",
        section=_SIGNS,
        mm2=True,
    )
    emit_heartbeats_interval_seconds: int = setting(
        "emit.heartbeats.interval.seconds",
        1,
        Integer(1),
        "How long a run leaves out its heartbeat after the flow's last.",
        section=_SIGNS,
        mm2=True,
    )
    heartbeats_replication_enabled: bool = setting(
        "heartbeats.replication.enabled",
        True,
        Boolean(),
        "Whether heartbeats topics are mirrored even where `topics` does not name them.",
        section=_SIGNS,
        mm2=True,
    )
    emit_checkpoints_enabled: bool = setting(
        "emit.checkpoints.enabled",
        True,
        Boolean(),
        "Whether translated positions are written to the checkpoints topic on the target, in MirrorMaker 2's format, "
        "at the end of a run and by `twinlog checkpoint`. Only what has changed is written.",
        section=_SIGNS,
        mm2=True,
    )
    emit_checkpoints_interval_seconds: int = setting(
        "emit.checkpoints.interval.seconds",
        60,
        Integer(1),
        "How long a run leaves them out after the last time; `twinlog checkpoint` does it at once.",
        section=_SIGNS,
        mm2=True,
    )
    emit_offset_syncs_enabled: bool = setting(
        "emit.offset-syncs.enabled",
        True,
        Boolean(),
        "Whether a run writes the offsets of the last copied record of every partition that moved, in MirrorMaker 2's "
        "format, for tools made for it; Twinlog translates by its ledger.",
        section=_SIGNS,
        mm2=True,
    )
    offset_syncs_topic_location: str = setting(
        "offset-syncs.topic.location",
        "source",
        Choice(("source", "target")),
        "On which cluster the offset-syncs topic is.",
        section=_SIGNS,
        mm2=True,
    )
    offset_syncs_topic_replication_factor: int = setting(
        "offset-syncs.topic.replication.factor",
        3,
        Integer(1),
        "Replicas of the offset-syncs topic.",
        section=_SIGNS,
        mm2=True,
    )
    checkpoints_topic_replication_factor: int = setting(
        "checkpoints.topic.replication.factor",
        3,
        Integer(1),
        "Replicas of the checkpoints topic, or as many as there are brokers.",
        section=_SIGNS,
        mm2=True,
    )
    heartbeats_topic_replication_factor: int = setting(
        "heartbeats.topic.replication.factor",
        3,
        Integer(1),
        "Replicas of the heartbeats topic.",
        section=_SIGNS,
        mm2=True,
    )
    canary_enabled: bool = setting(
        "canary.enabled",
        True,
        Boolean(),
        "Whether the canary topic of the source, `twinlog.<source>.canary`, is mirrored even where `topics` does not "
        "name it, and `twinlog canary` may write to it.",
        section=_SIGNS,
    )
    canary_records: int = setting(
        "canary.records",
        100,
        Integer(1),
        "Records that one canary writes to each partition of its topic.",
        section=_SIGNS,
    )
    canary_topic_partitions: int | None = setting(
        "canary.topic.partitions",
        None,
        Integer(1),
        "Partitions of the canary topic when it is made; as many as the source has brokers if not set.",
        section=_SIGNS,
    )
    canary_topic_replication_factor: int = setting(
        "canary.topic.replication.factor",
        3,
        Integer(1),
        "Replicas of the canary topic.",
        section=_SIGNS,
    )
    journal_topic_replication_factor: int = setting(
        "journal.topic.replication.factor",
        3,
        Integer(1),
        "Replicas of the journal on the target.",
        section=_SIGNS,
    )
