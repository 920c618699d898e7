"""What reconciliation needs to know of both logs of many partitions: where they begin and end, and what may remove
records there. Each question costs one request a broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from twinlog.cluster.inventory import log_sizes, settled_metadata, settled_offsets
from twinlog.cluster.log_offsets import OffsetAt
from twinlog.cluster.metadata import ClusterMetadata
from twinlog.cluster.raw import RawClient
from twinlog.cluster.topic_settings import read_settings
from twinlog.model.absence import LogRules
from twinlog.model.offsets import TopicPartition

_POLICY, _AGE, _SIZE, _BATCH = "cleanup.policy", "retention.ms", "retention.bytes", "max.message.bytes"
_DEFAULT_BATCH = 1_048_588
_GONE_FROM = 2**62
"""The log start of a topic that is no more: past every offset."""


@dataclass(frozen=True, slots=True)
class LogFacts:
    """One partition's log."""

    rules: LogRules
    end: int
    """Its last stable offset, or how far it is to be looked at."""
    log_end: int = 0
    """Of a target: what it has beyond `end` is there and can't be seen yet."""


@dataclass(frozen=True)
class SideFacts:
    """The logs of one cluster."""

    view: ClusterMetadata
    logs: Mapping[TopicPartition, LogFacts]
    failed: Mapping[TopicPartition, str]
    """The partitions of which the cluster would not say, with Kafka's error."""
    max_batch_bytes: Mapping[str, int]

    def is_current(self, topic: str, topic_id: UUID) -> bool:
        """Whether the name still stands for this very topic."""
        known = self.view.topics.get(topic)
        return known is not None and known.error is None and known.topic_id == topic_id

    def is_gone(self, topic: str, topic_id: UUID) -> bool:
        """Whether this very topic is no more: the name is free, or stands for another."""
        known = self.view.topics.get(topic)
        if known is None:
            return False
        return known.is_missing or (known.error is None and known.topic_id not in (None, topic_id))


NO_MORE = LogFacts(
    LogRules(_GONE_FROM, compacts=False, expires=True, retention_ms=None, by_size=True, any_deletion=True), 0
)
"""Of a source topic that was deleted: the ledger alone still speaks for it."""


async def side_facts(
    client: RawClient,
    partitions: Iterable[TopicPartition],
    ends: Mapping[TopicPartition, int] | None = None,
    *,
    is_source: bool,
) -> SideFacts:
    """The facts of these partitions; `ends`, where they are known from elsewhere, are taken instead of asked for."""
    asked = sorted(set(partitions))
    names = sorted({partition.topic for partition in asked})
    view = await settled_metadata(client, names)
    there = [one for one in asked if _exists(view, one)]
    starts = await settled_offsets(client, view, there, OffsetAt.LOG_START)
    stable = await settled_offsets(client, view, there, OffsetAt.LAST_STABLE)
    ends_now = stable if is_source else await settled_offsets(client, view, there, OffsetAt.LOG_END)
    failed = {**starts.failed, **stable.failed, **ends_now.failed}
    read = await read_settings(client, sorted({one.topic for one in there}), [_POLICY, _AGE, _SIZE, _BATCH])
    effective = {name: settings.effective for name, settings in read.topics.items()}
    sizes = await log_sizes(client, view) if _any_by_size(effective) else {}
    known = [one for one in there if one not in failed and one in starts.offsets and one in stable.offsets]
    logs = {
        one: LogFacts(
            _rules(effective.get(one.topic), starts.offsets[one], sizes.get(one), is_source=is_source),
            min(stable.offsets[one], (ends or {}).get(one, stable.offsets[one])),
            ends_now.offsets.get(one, stable.offsets[one]),
        )
        for one in known
    }
    limits = {name: int(settings.get(_BATCH, _DEFAULT_BATCH)) for name, settings in effective.items()}
    return SideFacts(view, logs, failed, limits)


def _exists(view: ClusterMetadata, partition: TopicPartition) -> bool:
    topic = view.topics.get(partition.topic)
    return topic is not None and topic.error is None and partition.partition < len(topic.partitions)


def _any_by_size(effective: Mapping[str, Mapping[str, str]]) -> bool:
    return any(int(settings.get(_SIZE, "-1")) >= 0 for settings in effective.values())


def _rules(settings: Mapping[str, str] | None, start: int, size: int | None, *, is_source: bool) -> LogRules:
    if settings is None:
        # What may not be seen may be anything: nothing is called wrong for want of knowing.
        return LogRules(start, compacts=True, expires=True, retention_ms=None, by_size=True, any_deletion=True)
    policy = settings.get(_POLICY, "delete")
    age_ms, most_bytes = int(settings.get(_AGE, "-1")), int(settings.get(_SIZE, "-1"))
    return LogRules(
        start,
        compacts="compact" in policy,
        expires="delete" in policy,
        retention_ms=age_ms if age_ms >= 0 else None,
        by_size=most_bytes >= 0 and (size is None or size >= most_bytes),
        any_deletion=is_source,
    )
