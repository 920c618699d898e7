"""What a topic is called on the other side, and back.

A policy is one flow's: `target_name` is total and no two topics share a result; `source_name` undoes it and
is None for a name that the policy cannot have made. Where the two are composed, the name is unchanged.

    orders  --prefixed, nyc-->  nyc.orders  --prefixed, lon-->  lon.nyc.orders
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from twinlog.errors import TopologyError
from twinlog.model.flow import Flow

HEARTBEATS = "heartbeats"


class NamingPolicy(Protocol):
    """How a flow names the topics it makes; also what `naming.policy` names must be."""

    def target_name(self, topic: str) -> str:
        """The name on the target of a topic of the source."""

    def source_name(self, remote_topic: str) -> str | None:
        """The name on the source of a topic of the target, or None where it did not come from there."""


@dataclass(frozen=True)
class Prefixed:
    """MirrorMaker 2's default: the source's alias, the separator, the topic."""

    prefix: str

    def target_name(self, topic: str) -> str:
        return self.prefix + topic

    def source_name(self, remote_topic: str) -> str | None:
        rest = remote_topic.removeprefix(self.prefix)
        return rest if rest and rest != remote_topic else None


@dataclass(frozen=True)
class Identity:
    """The same name on both sides; a name tells nothing of where its records were produced.

    Only `heartbeats` gets a prefix, as in MirrorMaker 2: it is by that name that its tools know a cluster's sources,
    and both clusters have heartbeats of their own.
    """

    heartbeats_prefix: str = ""

    def target_name(self, topic: str) -> str:
        return self.heartbeats_prefix + topic if self._is_heartbeats(topic) else topic

    def source_name(self, remote_topic: str) -> str | None:
        if not self._is_heartbeats(remote_topic):
            return remote_topic
        if not remote_topic.startswith(self.heartbeats_prefix):
            return None
        return remote_topic.removeprefix(self.heartbeats_prefix)

    def _is_heartbeats(self, topic: str) -> bool:
        # With any number of prefixes, or two topics could come to share a name.
        while self.heartbeats_prefix and topic.startswith(self.heartbeats_prefix):
            topic = topic.removeprefix(self.heartbeats_prefix)
        return topic == HEARTBEATS


@dataclass(frozen=True)
class Custom:
    """The topic between two fixed texts."""

    before: str
    after: str

    def target_name(self, topic: str) -> str:
        return f"{self.before}{topic}{self.after}"

    def source_name(self, remote_topic: str) -> str | None:
        if not (remote_topic.startswith(self.before) and remote_topic.endswith(self.after)):
            return None
        return remote_topic[len(self.before) : len(remote_topic) - len(self.after)] or None


@dataclass(frozen=True)
class AllBut:
    """Another policy, but for one topic that has the same name on both sides."""

    others: NamingPolicy
    topic: str

    def target_name(self, topic: str) -> str:
        return topic if topic == self.topic else self.others.target_name(topic)

    def source_name(self, remote_topic: str) -> str | None:
        if remote_topic == self.topic:
            return remote_topic
        topic = self.others.source_name(remote_topic)
        return None if topic == self.topic else topic


def but_for_schemas(flow: Flow, policy: NamingPolicy) -> NamingPolicy:
    """The flow's naming of everything but the Schema Registry's topic, which keeps its name."""
    kept = flow.schemas_topic
    return policy if kept is None or policy.target_name(kept) == kept else AllBut(policy, kept)


def policy_of(flow: Flow) -> NamingPolicy:
    """A flow's naming; one that is a Python entry point is made by `twinlog.intake.extensions` instead."""
    return but_for_schemas(flow, _policy_of(flow))


def _policy_of(flow: Flow) -> NamingPolicy:
    if flow.naming == "prefixed":
        return Prefixed(flow.source + flow.replication_policy_separator)
    if flow.naming == "identity":
        return Identity(flow.source + flow.replication_policy_separator)
    if flow.naming_format is None:
        raise TopologyError(f"flow {flow.name}: naming custom needs a naming.format where it has no naming.policy")
    filled = flow.naming_format.replace("${source}", flow.source).replace("${target}", flow.target)
    before, _, after = filled.partition("${topic}")
    return Custom(before, after)


def hops(topic: str, aliases: frozenset[str], separator: str = ".") -> tuple[str, ...]:
    """The clusters a prefixed name has come through, the latest first: `nyc.lon.orders` came from nyc, then
    lon.

    Only known aliases count, so that `prod.orders` is a topic of this cluster unless there is a cluster
    `prod`.
    """
    through: list[str] = []
    alias, found, rest = topic.partition(separator)
    while found and rest and alias in aliases:
        through.append(alias)
        alias, found, rest = rest.partition(separator)
    return tuple(through)


def original_topic(topic: str, aliases: frozenset[str], separator: str = ".") -> str:
    """The name a prefixed topic had where it was produced."""
    for alias in hops(topic, aliases, separator):
        topic = topic.removeprefix(alias + separator)
    return topic


def is_heartbeats(topic: str, aliases: frozenset[str], separator: str = ".") -> bool:
    """Whether this is a heartbeats topic, here or come through any number of clusters."""
    return original_topic(topic, aliases, separator) == HEARTBEATS


def is_internal(topic: str, separator: str = ".") -> bool:
    """Whether a topic serves Kafka, MirrorMaker 2 or Twinlog itself; such topics are never mirrored.

    The rule of MirrorMaker 2 in Kafka 4.3, and Twinlog's own `twinlog.*.internal`. A user's topic that
    merely ends in `.internal` is none.
    """
    if topic.startswith(("__", ".")):
        return True
    if topic.startswith("twinlog.") and topic.endswith(".internal"):
        return True
    # MirrorMaker 2 keeps "." in these names where internal.topic.separator.enabled is false.
    return any(
        (topic.startswith("mm2") and topic.endswith(f"{mark}internal"))
        or topic.endswith(f"{mark}checkpoints{mark}internal")
        for mark in {separator, "."}
    )


def offset_syncs_topic(flow: Flow) -> str:
    """MirrorMaker 2's name: after the cluster at the other end from where the topic is."""
    other = flow.target if flow.offset_syncs_topic_location == "source" else flow.source
    mark = flow.replication_policy_separator
    return f"mm2-offset-syncs{mark}{other}{mark}internal"


def checkpoints_topic(flow: Flow) -> str:
    """MirrorMaker 2's name of the topic on the target that holds translated positions."""
    mark = flow.replication_policy_separator
    return f"{flow.source}{mark}checkpoints{mark}internal"


def is_topic_name(name: str) -> bool:
    """Whether Kafka allows a topic of this name."""
    return re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name) is not None and name not in (".", "..")
