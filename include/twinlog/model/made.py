"""What Twinlog has made on a flow's target: only this may it ever remove there. And what it keeps back there while
topics are mirrored, which a takeover needs when the source is no longer there to be asked.

It is kept on the target cluster in a compacted topic of its own, one record a thing, so that it is found again from
anywhere and outlives Airflow and the source.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from uuid import UUID

from twinlog.errors import FlowStateError
from twinlog.model.acls import Acl, acl_of
from twinlog.model.quotas import Quota


@dataclass(frozen=True, slots=True)
class MadeTopic:
    """A topic that Twinlog created, and what it was created from."""

    target_id: UUID
    source: str
    source_id: UUID
    source_cluster: str | None
    """The id of the cluster that the source topic was on."""
    gone_since_ms: int | None = None
    """When a sync first found the source topic gone."""


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """A twin that somebody else created, whose settings have been brought in step, and whose twin it is."""

    target_id: UUID
    source_id: UUID


@dataclass(frozen=True)
class Made:
    """Everything remembered of one flow; topics are by their name on the target."""

    topics: Mapping[str, MadeTopic] = field(default_factory=dict)
    acls: frozenset[Acl] = frozenset()
    quotas: frozenset[Quota] = frozenset()
    configs_compared_ms: int = 0
    acls_compared_ms: int = 0
    """When the settings and the ACLs of all topics were last compared."""
    source_cluster: str | None = None
    """The id of the cluster that the ACLs and quotas were copied from."""
    held: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By the twin, what the source's topic overrides of the settings that copying sets on twins."""
    withheld: frozenset[Acl] = frozenset()
    """What the source allows, as it would be on the target, and nobody is allowed there while topics are mirrored."""
    found: Mapping[str, FoundTopic] = field(default_factory=dict)
    """Twins that others created."""

    def settings_known(self, name: str, topic_id: UUID | None) -> bool:
        """Whether this topic of the target was created with the settings of a twin, or has been given them."""
        made, found = self.topics.get(name), self.found.get(name)
        return topic_id is not None and (
            (made is not None and made.target_id == topic_id) or (found is not None and found.target_id == topic_id)
        )

    @property
    def source_ids(self) -> dict[str, UUID]:
        """By the twin, which topic of the source it is the twin of."""
        made = {name: topic.source_id for name, topic in self.topics.items()}
        return {**{name: topic.source_id for name, topic in self.found.items()}, **made}


@dataclass(frozen=True)
class Remembered:
    """What one sync adds to the memory and takes from it."""

    topics: Mapping[str, MadeTopic | None] = field(default_factory=dict)
    """None for one that is no longer there."""
    acls: frozenset[Acl] = frozenset()
    no_acls: frozenset[Acl] = frozenset()
    quotas: frozenset[Quota] = frozenset()
    no_quotas: frozenset[Quota] = frozenset()
    configs_compared_ms: int = 0
    acls_compared_ms: int = 0
    source_cluster: str | None = None
    held: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of topics that were looked at; empty for one that overrides nothing."""
    withheld: frozenset[Acl] | None = None
    """All there are; None where nobody has looked."""
    found: Mapping[str, FoundTopic] = field(default_factory=dict)

    def added_to(self, made: Made) -> Made:
        topics = {**made.topics, **self.topics}
        return Made(
            {name: topic for name, topic in topics.items() if topic is not None},
            (made.acls | self.acls) - self.no_acls,
            (made.quotas | self.quotas) - self.no_quotas,
            max(made.configs_compared_ms, self.configs_compared_ms),
            max(made.acls_compared_ms, self.acls_compared_ms),
            self.source_cluster or made.source_cluster,
            {name: values for name, values in {**made.held, **self.held}.items() if values},
            made.withheld if self.withheld is None else self.withheld,
            {**made.found, **self.found},
        )


def made_topic(source: str, target: str) -> str:
    """The internal topic on the target that holds it."""
    return f"twinlog.{source}.{target}.made.internal"


def made_transactional_id(source: str, target: str) -> str:
    return f"twinlog.{source}->{target}.made"


def to_values(made: Made) -> dict[str, bytes]:
    """The key and value of each record that says this."""
    values: dict[str, object] = {
        f"topic {name}": {
            "target_id": str(topic.target_id),
            "source": topic.source,
            "source_id": str(topic.source_id),
            "source_cluster": topic.source_cluster,
            "gone_since_ms": topic.gone_since_ms,
        }
        for name, topic in made.topics.items()
    }
    values |= {f"acl {json.dumps(astuple(acl))}": True for acl in made.acls}
    values |= {f"quota {json.dumps([quota.entity, quota.key])}": True for quota in made.quotas}
    values |= {f"held {name}": dict(overrides) for name, overrides in made.held.items()}
    values |= {f"withheld {json.dumps(astuple(acl))}": True for acl in made.withheld}
    values |= {
        f"found {name}": {"target_id": str(topic.target_id), "source_id": str(topic.source_id)}
        for name, topic in made.found.items()
    }
    values["configs compared"] = made.configs_compared_ms
    values["acls compared"] = made.acls_compared_ms
    values["source cluster"] = made.source_cluster
    return {key: json.dumps(value).encode() for key, value in values.items()}


def from_values(values: Mapping[str, bytes], where: str) -> Made:
    """What the newest value of each key says; keys that a newer twinlog added are left alone."""
    topics: dict[str, MadeTopic] = {}
    acls: set[Acl] = set()
    quotas: set[Quota] = set()
    held: dict[str, dict[str, str]] = {}
    withheld: set[Acl] = set()
    found: dict[str, FoundTopic] = {}
    try:
        for key, value in values.items():
            kind, _, name = key.partition(" ")
            if kind == "topic":
                said = json.loads(value)
                topics[name] = MadeTopic(
                    UUID(said["target_id"]),
                    said["source"],
                    UUID(said["source_id"]),
                    said["source_cluster"],
                    said["gone_since_ms"],
                )
            elif kind == "acl":
                acls.add(acl_of(json.loads(name)))
            elif kind == "held":
                held[name] = dict(json.loads(value))
            elif kind == "withheld":
                withheld.add(acl_of(json.loads(name)))
            elif kind == "found":
                said = json.loads(value)
                found[name] = FoundTopic(UUID(said["target_id"]), UUID(said["source_id"]))
            elif kind == "quota":
                entity, limit = json.loads(name)
                quotas.add(Quota(tuple((part, owner) for part, owner in entity), limit))
        return Made(
            topics,
            frozenset(acls),
            frozenset(quotas),
            int(json.loads(values.get("configs compared", b"0"))),
            int(json.loads(values.get("acls compared", b"0"))),
            json.loads(values.get("source cluster", b"null")),
            held,
            frozenset(withheld),
            found,
        )
    except (ValueError, TypeError, KeyError) as wrong:
        raise FlowStateError(
            f"{where}: what Twinlog has made can't be read: {wrong}; was it written by a newer twinlog?"
        ) from wrong
