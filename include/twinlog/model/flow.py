"""A flow: one direction between two clusters, with every setting it has.

The settings are defined in the bases, each once, with name, default and meaning. Names, defaults and meanings
are those of MirrorMaker 2 (Kafka 4.3) wherever it has the setting. Patterns are Python's; what users of
MirrorMaker 2 write (`prod\\..*`) means the same in both.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from twinlog.model.flow_copying import CopyingSettings
from twinlog.model.flow_proof import ProofSettings
from twinlog.model.flow_running import RunningSettings
from twinlog.model.flow_selection import NamingSettings, SelectionSettings
from twinlog.model.flow_takeover import TakeoverSettings
from twinlog.model.flow_upkeep import GroupSettings, SignalSettings, SyncSettings
from twinlog.model.references import is_secret
from twinlog.model.settings import settings_of


# Dataclasses collect fields from the last base to the first: docs/settings.md begins with selection.
@dataclass(frozen=True)
class Flow(
    TakeoverSettings,
    RunningSettings,
    ProofSettings,
    SignalSettings,
    GroupSettings,
    SyncSettings,
    CopyingSettings,
    NamingSettings,
    SelectionSettings,
):
    """One direction between two clusters.

    Each setting is one attribute: its name with dots and dashes turned into underscores. `overrides` holds
    the flow's Kafka client properties as written (`source.consumer.fetch.max.bytes`), references included.
    """

    source: str
    target: str
    overrides: Mapping[str, str] = field(default_factory=dict, hash=False, kw_only=True)

    @property
    def name(self) -> str:
        return f"{self.source}->{self.target}"

    @property
    def as_described(self) -> Flow:
        """The flow by whose description it runs: a way home (`model.way_home`) may share another's."""
        return self

    @property
    def digest(self) -> str:
        """Equal for flows with equal settings; settings at their default and secrets are not part of it."""
        chosen = {item.name: (getattr(self, item.attribute), item.default) for item in settings_of(Flow).values()}
        content = {
            "flow": self.name,
            "settings": {name: value for name, (value, default) in chosen.items() if value != default},
            "overrides": {key: value for key, value in self.overrides.items() if not is_secret(key)},
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
