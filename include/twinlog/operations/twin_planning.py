"""What a flow's topics need on the target, from what both clusters say: topics, partitions, settings, deletions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from twinlog.cluster.metadata import ClusterMetadata, Topic
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import Refusal, named, sentences
from twinlog.cluster.topic_admin import ClusterDefaults, cluster_defaults
from twinlog.cluster.topic_settings import SettingsRead, read_settings
from twinlog.model.made import Made
from twinlog.model.twin_settings import MIN_IN_SYNC, NEEDED, SettingChange, SettingRules, TopicSettings, WantedSettings
from twinlog.model.twin_topics import (
    DeletionPlan,
    DeletionRules,
    Growth,
    NewTwin,
    Report,
    ReportKind,
    TopicFacts,
    plan_deletions,
    plan_topics,
    replication_factor,
)
from twinlog.operations.own_topics import PlannedTopic, probe_topic
from twinlog.operations.preflight import ENOUGH_REPLICAS
from twinlog.operations.sync_scope import Memory, Scope, SyncRules


@dataclass(frozen=True)
class Sides:
    """Both clusters, as they described themselves when the sync began."""

    source: RawClient
    source_view: ClusterMetadata
    target: RawClient
    target_view: ClusterMetadata


@dataclass(frozen=True)
class TwinPlan:
    """The part of a plan that is about topics."""

    sources: Mapping[str, TopicFacts]
    """The mirrored topics of the source by the name of their twin."""
    create: tuple[NewTwin, ...]
    grow: tuple[Growth, ...]
    settings: tuple[SettingChange, ...]
    deletions: DeletionPlan
    reports: tuple[Report, ...]
    compared: frozenset[str]
    """The twins whose settings are in step once the changes are made."""
    failed: tuple[str, ...]
    notes: tuple[str, ...]
    source_settings: Mapping[str, TopicSettings]
    target_settings: Mapping[str, TopicSettings]
    """As far as they were read, each by the name on that side."""
    default_min_in_sync: int | None
    """What holds on the target for a topic of which nothing is said; None where it is not known."""


async def plan_twins(sides: Sides, rules: SyncRules, scope: Scope, memory: Memory, now_ms: int) -> TwinPlan:
    """Compare the flow's topics on both sides; changes nothing."""
    flow = rules.flow
    sources = {
        rules.policy.target_name(topic.name): facts(topic)
        for topic in sides.source_view.topics.values()
        if topic.error is None and rules.takes(topic.name) and (scope.topics is None or topic.name in scope.topics)
    }
    if not scope.new:
        sources = {
            name: topic
            for name, topic in sources.items()
            if name in sides.target_view.topics or rules.selection.is_sign(topic.name)
        }
    targets = {topic.name: facts(topic) for topic in sides.target_view.topics.values() if topic.error is None}
    came_back = {name for name, topic in sources.items() if memory.came_back(topic.name, topic.topic_id)}
    topics = plan_topics(sources, targets, memory.here.source_ids, came_back)
    # The settings of what came from the target are the target's to say.
    twins = {name: targets[name] for name in sorted((sources.keys() & targets.keys()) - came_back)}
    compared = list(_to_compare(twins, rules, scope, memory.here))
    # Both at once: it is the brokers that take their time over thousands of topics.
    here, there = await sides.target.gather(
        [
            read_settings(sides.source, [sources[name].name for name in (*topics.missing, *compared)]),
            read_settings(sides.target, compared),
        ]
    )
    defaults = await cluster_defaults(sides.target, probe_topic(flow))
    setting_rules = SettingRules(
        rules.settings.accepts,
        defaults_from_source=flow.use_defaults_from == "source",
        target_defaults=None if defaults is None else defaults.settings,
        holds=memory.holds,
    )
    readable = here.topics.keys()
    create = tuple(
        NewTwin(name, source, factor, setting_rules.wanted(here.topics[source.name], factor))
        for name, source, factor in _new_twins(topics.missing, sources, rules, sides.target_view, defaults)
        # Without its settings, a twin's old records would be gone as soon as they came.
        if source.name in readable
    )
    wanted = {
        name: setting_rules.wanted(here.topics[sources[name].name], targets[name].replicas)
        for name in compared
        if sources[name].name in readable and name in there.topics
    }
    changes = [
        change
        for name, values in wanted.items()
        for change in setting_rules.differences(name, values, there.topics[name])
    ]
    led_by_both = {
        name for name in wanted if rules.led_by_both(sources[name].name) and not memory.made(name, targets[name])
    }
    disputed = [change for change in changes if change.topic in led_by_both and change.name not in NEEDED]
    return TwinPlan(
        sources,
        create,
        tuple(each for each in topics.grow if scope.new or rules.selection.is_sign(sources[each.name].name)),
        tuple(change for change in changes if change not in disputed),
        await _deletions(sides, rules, scope, memory.here, now_ms),
        (*topics.reports, *_two_leaders(rules, disputed)),
        frozenset(wanted),
        tuple(_unread(sides, rules, here, there)),
        (*_left_behind(rules, create, wanted.values()), *_stay_deleted(rules, topics.gone_at_home, memory)),
        here.topics,
        there.topics,
        None if defaults is None else defaults.min_in_sync,
    )


def facts(topic: Topic) -> TopicFacts:
    replicas = len(topic.partitions[0].replicas) if topic.partitions else 0
    return TopicFacts(topic.name, topic.topic_id, len(topic.partitions), replicas)


def _to_compare(twins: Mapping[str, TopicFacts], rules: SyncRules, scope: Scope, made: Made) -> Iterator[str]:
    """Every twin where the flow's interval is over; otherwise those that nobody has given the settings that they need.

    Somebody else may create a twin at any time: what its retention or its time stamps' bounds would take from old
    records is gone by the time the interval is over.
    """
    for name, twin in twins.items():
        new = rules.flow.sync_topic_configs_enabled and not made.settings_known(name, twin.topic_id)
        if scope.every_setting or new:
            yield name


def _two_leaders(rules: SyncRules, disputed: Sequence[SettingChange]) -> Iterator[Report]:
    """Topics that were on both clusters before: each of the two flows would undo what is set on its target's side."""
    for name, changes in groupby(disputed, key=lambda change: change.topic):
        yield Report(
            ReportKind.TWO_LEADERS,
            name,
            f"topic {name} was on {rules.flow.source} and {rules.flow.target} before it was mirrored both ways, and "
            f"they differ in {named([change.name for change in changes])}; set them alike by hand, or say which side "
            "leads by sync.topic.configs.enabled: false on the flow to it",
        )


def planned_twin(twin: NewTwin, default_min_in_sync: int | None) -> PlannedTopic:
    """As the preflight judges it; a target's default factor that is not known is not judged."""
    in_sync = twin.wanted.values.get(MIN_IN_SYNC)
    replicas = twin.replication_factor if twin.replication_factor > 0 else ENOUGH_REPLICAS
    return PlannedTopic(twin.name, replicas, default_min_in_sync if in_sync is None else int(in_sync))


def _new_twins(
    missing: tuple[str, ...],
    sources: Mapping[str, TopicFacts],
    rules: SyncRules,
    target: ClusterMetadata,
    defaults: ClusterDefaults | None,
) -> Iterator[tuple[str, TopicFacts, int]]:
    """Each missing twin with its source and how many replicas it gets."""
    default_factor = None if defaults is None else defaults.replication_factor
    for name in missing:
        source = sources[name]
        yield (
            name,
            source,
            replication_factor(rules.flow.replication_factor, source, len(target.brokers), default_factor),
        )


async def _deletions(sides: Sides, rules: SyncRules, scope: Scope, made: Made, now_ms: int) -> DeletionPlan:
    flow = rules.flow
    if not flow.sync_topic_deletes or scope.topics is not None:
        return DeletionPlan()
    absent = {topic.source for topic in made.topics.values()} - sides.source_view.topics.keys()
    asked = sorted(name for name in absent if rules.takes(name))
    if not asked:
        return DeletionPlan()
    # A topic that we are no longer allowed to see is missing from the list of all, too; asked by name it is told apart.
    answers = (await sides.source.metadata(asked)).topics
    gone = [name for name in asked if name in answers and answers[name].is_missing]
    targets = {topic.name: facts(topic) for topic in sides.target_view.topics.values() if topic.error is None}
    grace_ms = flow.sync_topic_deletes_grace_seconds * 1000
    return plan_deletions(gone, targets, made.topics, DeletionRules(sides.source_view.cluster_id, now_ms, grace_ms))


def _unread(sides: Sides, rules: SyncRules, here: SettingsRead, there: SettingsRead) -> list[str]:
    operation = "DESCRIBE_CONFIGS"
    return [
        *sentences(
            sides.source.alias,
            rules.source_principal,
            operation,
            _topics(here.refused),
            "the settings are not compared and a twin that is missing is not created",
        ),
        *sentences(
            sides.target.alias,
            rules.target_principal,
            operation,
            _topics(there.refused),
            "the settings are not compared",
        ),
    ]


def _topics(refused: Mapping[str, Refusal]) -> dict[str, Refusal]:
    return {f"topic {name}": found for name, found in refused.items()}


def _stay_deleted(rules: SyncRules, gone: tuple[str, ...], memory: Memory) -> list[str]:
    # Of topics that merely may have come from there, the sentence about the lost memory has said it.
    if not gone or memory.lost_opposite is not None:
        return []
    target = rules.flow.target
    return [
        f"these topics came from cluster {target} and were deleted there, so they are not created there again: "
        f"{named(gone)}"
    ]


def _left_behind(rules: SyncRules, create: tuple[NewTwin, ...], wanted: Iterable[WantedSettings]) -> Iterator[str]:
    target = rules.flow.target
    compared = [twin.wanted for twin in create] + list(wanted)
    unknown = sorted({key for values in compared for key in values.unknown})
    if unknown:
        yield f"cluster {target} does not know these settings of the source, which stay behind: {named(unknown)}"
    for key in sorted({key for twin in create for key in twin.wanted.traps}):
        names = [f"topic {twin.name}" for twin in create if key in twin.wanted.traps]
        yield (
            f"the flow excludes {key}, and cluster {target}'s default is narrower than the source's, so records may be "
            f"lost on {named(names)}; take it out of config.properties.exclude"
        )
