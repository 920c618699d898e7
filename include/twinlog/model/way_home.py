"""The way home of a flow: the same flow the other way round, by which a failback brings back what was written on the
target.

    nyc->lon, prefixed    orders  ------->  nyc.orders       mirrored, until lon took over
    its way home          orders  <-------  nyc.orders       what was written there since

It undoes the flow's naming and takes the topics that the flow takes, so nothing but what belongs to the flow goes
home. It goes under the name `lon->nyc`, with journal, state and positions of that name on nyc: those of the
topology's own flow `lon->nyc`, where there is one. That flow goes on with its own topics (lon's own `orders`, under
prefixed names), and who runs which of the two at a time is settled by the one lease that they share.

A topic of which everything is to go home, since the source has lost it, is `anew`: what had come from the source is
then not passed over.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from twinlog.errors import ConfigurationError
from twinlog.model.canary import canary_topic
from twinlog.model.filters import NameFilter
from twinlog.model.flow import Flow
from twinlog.model.naming import HEARTBEATS, NamingPolicy

_OWN = {
    "naming": "custom",
    "naming_format": None,
    "naming_policy": None,
    "topic_filter": None,
    "topics_from": "earliest",
    "emit_heartbeats_enabled": False,
    "heartbeats_replication_enabled": False,
    "emit_offset_syncs_enabled": False,
    "canary_enabled": False,
    "sync_topic_configs_enabled": False,
    "sync_topic_acls_enabled": False,
    "sync_topic_deletes": False,
    "enabled": True,
}
"""What a way home does not have from its flow: it brings records, and leaves settings and permissions as they are."""
_SIDES = {"source.": "target.", "target.": "source."}


@dataclass(frozen=True)
class WayHome(Flow):
    """The way home of `onward`; `listed` is the topology's own flow in this direction, whose name it shares."""

    onward: Flow = field(kw_only=True)
    listed: Flow | None = field(default=None, kw_only=True)
    anew: frozenset[str] = field(default=frozenset(), kw_only=True)
    """Topics of the flow's target of which everything goes home."""

    @property
    def as_described(self) -> Flow:
        """By which description it runs: that of the flow whose state it shares."""
        return self.listed or self


def way_home(onward: Flow, listed: Flow | None = None, anew: frozenset[str] = frozenset()) -> WayHome:
    """The way home of a flow, with the settings of the listed flow of that direction, or else those of the flow."""
    if listed is not None and listed.naming == "identity" and onward.naming != "identity":
        raise ConfigurationError(
            f"{onward.name} names topics otherwise on {onward.target} and {listed.name} does not: what goes home to a "
            f"topic of {onward.source} and what {listed.name} mirrors to it could not be told apart"
        )
    base = listed or onward
    settings: dict[str, Any] = {
        one.name: getattr(base, one.name) for one in fields(Flow) if one.name not in ("source", "target", "overrides")
    }
    # Groups are taken as the flow takes them, and the lanes' layout is that of the flow whose journal it is.
    settings |= {**_OWN, **{name: getattr(onward, name) for name in ("groups", "groups_exclude", "group_filter")}}
    overrides = dict(base.overrides) if listed is not None else {_turned(k): v for k, v in onward.overrides.items()}
    return WayHome(
        onward.target, onward.source, overrides=overrides, onward=onward, listed=listed, anew=anew, **settings
    )


def _turned(key: str) -> str:
    """A client property of the flow's source is one of the way home's target."""
    for before, after in _SIDES.items():
        if key.startswith(before):
            return after + key.removeprefix(before)
    return key


@dataclass(frozen=True)
class Homeward:
    """The naming of a way home: its flow's, undone."""

    onward: NamingPolicy

    def target_name(self, topic: str) -> str:
        home = self.onward.source_name(topic)
        # Total, as every policy; what did not come from there is never taken.
        return topic if home is None else home

    def source_name(self, remote_topic: str) -> str | None:
        return self.onward.target_name(remote_topic)


@dataclass(frozen=True)
class GoesHome:
    """The topics of a way home: those that its flow takes, under their names on the flow's target."""

    flow: WayHome
    naming: NamingPolicy
    taken: NameFilter

    def accepts(self, name: str) -> bool:
        home = self.naming.source_name(name)
        signs = (HEARTBEATS, canary_topic(self.flow.onward.source))
        if home is None or home in signs:
            return False
        return home == self.flow.onward.schemas_topic or self.taken.accepts(home)
