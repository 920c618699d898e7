"""The settings that a twin must have, and how the target's differ from them.

Only overrides travel: what was set on the source's topic itself, less what the flow excludes. Three things are added:

- the twin's own settings, which keep copied batches as they are and let old timestamps in;
- with `use.defaults.from=source`, the source's defaults;
- a limit of the source that is wider than the target's default (retention, the size of a batch) is written out on the
  twin, and so is its cleanup policy where the default is another: under the target's, mirrored records would be deleted
  or refused. The note beside it says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

MOST = str(2**63 - 1)
MIN_IN_SYNC = "min.insync.replicas"
UNLIMITED = -1

TWIN_SETTINGS: Mapping[str, str] = {
    # Batches are copied as they are; a broker that compressed them again would undo that.
    "compression.type": "producer",
    # Readers see the source's stamps. LogAppendTime would replace them.
    "message.timestamp.type": "CreateTime",
    # Records may be as old as the source's retention allows; the broker must not refuse them for it.
    "message.timestamp.before.max.ms": MOST,
    "message.timestamp.after.max.ms": MOST,
    # The same, on clusters before Kafka 4.
    "message.timestamp.difference.max.ms": MOST,
}
NEEDED = frozenset({*TWIN_SETTINGS, MIN_IN_SYNC})
"""What copying itself needs of a twin, whoever else has a say in its settings."""
_NOTES = {
    "message.timestamp.before.max.ms": "mirrored records may be old",
    "message.timestamp.after.max.ms": "mirrored records keep the source's stamps, whatever the clocks",
    "message.timestamp.difference.max.ms": "mirrored records may be old",
}
HELD: Mapping[str, str] = {
    # A record that is brought late is as old as it is: by its age it would go, or be compacted, as soon as it came.
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "min.compaction.lag.ms": MOST,
    "max.compaction.lag.ms": MOST,
}
"""What a twin has instead of the source's while a migration fills the target."""
_HELD_NOTE = "held until the migration is cut over; then it is the source's again"
_RETENTION = ("retention.ms", "retention.bytes")
_POLICY = "cleanup.policy"
_LIMITS = (*_RETENTION, "max.message.bytes", _POLICY)


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """What a cluster says of one topic's settings."""

    overrides: Mapping[str, str]
    """Set on the topic itself."""
    effective: Mapping[str, str]
    """Every setting that has a value, from wherever it comes."""


@dataclass(frozen=True, slots=True)
class WantedSettings:
    """The overrides that a twin should have; `notes` says why, for those that no override of the source explains."""

    values: Mapping[str, str]
    notes: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    """Overrides of the source that the target's version of Kafka does not have."""
    traps: tuple[str, ...] = ()
    """Limits that the flow excludes although the target's default is narrower than the source's."""


@dataclass(frozen=True, slots=True)
class SettingChange:
    """An override to set, or with `after` None to take away."""

    topic: str
    name: str
    before: str | None
    after: str | None
    note: str | None = None


class SettingRules:
    """What one flow makes of topic settings."""

    def __init__(
        self,
        travels: Callable[[str], bool],
        *,
        defaults_from_source: bool,
        target_defaults: Mapping[str, str] | None,
        holds: bool = False,
    ) -> None:
        """`target_defaults`: what a topic without overrides would have on the target; None where it is not known.
        With `holds`, nothing of a twin is deleted or compacted for its age or size."""
        self._asked = travels
        self._travels: dict[str, bool] = {}
        self._defaults_from_source = defaults_from_source
        self._target_defaults = target_defaults
        self._holds = holds

    def travels(self, key: str) -> bool:
        """Whether the flow takes a setting; asked once a setting, not once a topic."""
        if key not in self._travels:
            self._travels[key] = self._asked(key)
        return self._travels[key]

    def wanted(self, source: TopicSettings, replicas: int) -> WantedSettings:
        """The overrides of a twin that has so many replicas."""
        carried = source.effective if self._defaults_from_source else source.overrides
        values = {key: value for key, value in carried.items() if self.travels(key)}
        unknown = tuple(sorted(key for key in values if not self._known(key) and key in source.overrides))
        values = {key: value for key, value in values.items() if self._known(key)}
        notes: dict[str, str] = {}
        for key, value, note in self._wider_limits(source, values):
            values[key] = value
            notes[key] = note
        if self._holds:
            # What the flow excludes is the target's people's to say, now as at any time.
            held = {key: value for key, value in HELD.items() if self.travels(key) and self._known(key)}
            values |= held
            notes |= dict.fromkeys(held, _HELD_NOTE)
        own = {key: value for key, value in TWIN_SETTINGS.items() if self._known(key)}
        notes |= {key: _NOTES[key] for key in own if key in _NOTES}
        values |= own
        in_sync = _min_in_sync(values.pop(MIN_IN_SYNC, None), replicas)
        if in_sync is not None:
            values[MIN_IN_SYNC] = str(in_sync)
        return WantedSettings(values, notes, unknown, tuple(self._traps(source)))

    def differences(self, topic: str, wanted: WantedSettings, now: TopicSettings) -> Iterator[SettingChange]:
        """What to change on a twin that is there; settings that the flow excludes stay as people made them."""
        for key, value in sorted(wanted.values.items()):
            before = now.overrides.get(key)
            if before == value or (key == MIN_IN_SYNC and int(now.effective.get(key, "1")) >= int(value)):
                continue
            yield SettingChange(topic, key, before, value, wanted.notes.get(key))
        for key, value in sorted(now.overrides.items()):
            if key not in wanted.values and key not in TWIN_SETTINGS and key != MIN_IN_SYNC and self.travels(key):
                yield SettingChange(topic, key, value, None)

    def _known(self, key: str) -> bool:
        if self._target_defaults is None:
            # Every version that Twinlog writes to has the others.
            return key != "message.timestamp.difference.max.ms"
        return key in self._target_defaults

    def _wider_limits(self, source: TopicSettings, values: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
        for key in _limits(source):
            if key in values or not self.travels(key):
                continue
            here, there = source.effective[key], (self._target_defaults or {}).get(key)
            if there is None:
                yield key, here, "the source's, since the target's default is not known"
            elif _loses(key, here, there):
                trap = "refuse" if key == "max.message.bytes" else "delete"
                yield key, here, f"the source's; the target's default of {there} would {trap} mirrored records"

    def _traps(self, source: TopicSettings) -> Iterator[str]:
        for key in _limits(source):
            there = (self._target_defaults or {}).get(key)
            if there is not None and not self.travels(key) and _loses(key, source.effective[key], there):
                yield key


def _limits(source: TopicSettings) -> Iterator[str]:
    """The limits that hold for a topic; retention does not where nothing is deleted for its age or size."""
    deletes = "delete" in source.effective.get(_POLICY, "delete")
    return (key for key in _LIMITS if key in source.effective and (deletes or key not in _RETENTION))


def _loses(key: str, here: str, there: str) -> bool:
    """Whether records that the source keeps by its value would be lost by the target's."""
    if key == _POLICY:
        # By age and size one policy deletes what the other keeps, by key the other.
        return set(here.split(",")) != set(there.split(","))
    return int(there) != UNLIMITED and (int(here) == UNLIMITED or int(here) > int(there))


def _min_in_sync(carried: str | None, replicas: int) -> int | None:
    """Two where there are three replicas, or more if the source's travels and can be kept."""
    wanted = max(int(carried or 1), 2 if replicas >= 3 else 1)
    return wanted if 1 < wanted <= max(replicas, 1) else None
