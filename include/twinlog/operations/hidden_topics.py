"""Topics of a flow that its source does not show.

A topic that we may not see is missing from the list of all, as one is that is not there. Of a pattern nobody can say
what it would have matched; what the flow names, and what it has mirrored before, is asked for by name, so that the flow
does not pass for whole without it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from twinlog.cluster.metadata import ClusterMetadata
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import Refusal, refusal_named, sentences
from twinlog.model.filters import literal_names
from twinlog.model.findings import Finding, FindingKind
from twinlog.model.flow import Flow
from twinlog.model.naming import NamingPolicy
from twinlog.model.offsets import TopicPartition
from twinlog.model.selection import TopicSelection

_NOT_COPIED = "it is not copied; if it is gone for good, add it to topics.exclude"


@dataclass(frozen=True, slots=True)
class Hidden:
    """A topic, and why it is not shown."""

    topic: str
    refusal: Refusal

    def said(self, source: RawClient) -> str:
        resource = {f"topic {self.topic}": self.refusal}
        return next(sentences(source.alias, source.principal, "DESCRIBE", resource, _NOT_COPIED))


async def hidden_topics(source: RawClient, view: ClusterMetadata, names: Collection[str]) -> list[Hidden]:
    """Those of `names` that are there, for all we know, and not to be seen."""
    absent = sorted(set(names) - view.topics.keys())
    if not absent:
        return []
    found = (await source.metadata(absent)).topics
    return [
        Hidden(name, refusal_named(topic.error))
        for name in absent
        if (topic := found.get(name)) is not None and topic.error is not None and not topic.is_missing
    ]


def named_by(flow: Flow, selection: TopicSelection) -> set[str]:
    """The topics that the flow takes and names in full."""
    if flow.topic_filter is not None:
        return set()
    names = set[str]().union(*(literal_names([pattern]) or () for pattern in flow.topics))
    return {name for name in names if selection.left_out(name) is None}


def mirrored_before(twins: Iterable[str], policy: NamingPolicy, selection: TopicSelection) -> set[str]:
    """The topics that these twins are of, as far as the flow still takes them."""
    names = {policy.source_name(twin) for twin in twins}
    return {name for name in names if name is not None and selection.left_out(name) is None}


def not_copied(source: RawClient, hidden: Iterable[Hidden]) -> list[Finding]:
    """A finding for each, for a run that would copy it."""
    return [
        Finding(
            FindingKind.NOT_ALLOWED if one.refusal.not_allowed else FindingKind.REFUSED,
            TopicPartition(one.topic, 0),
            0,
            one.said(source),
        )
        for one in hidden
    ]
