"""What a sync would change on the target, as typed lists to carry out and as rows to show.

A plan holds differences only: where source and target agree it is empty, so a second sync right after finds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from twinlog.model.acls import Acl
from twinlog.model.quotas import QuotaChange
from twinlog.model.twin_settings import SettingChange
from twinlog.model.twin_topics import Deletion, Growth, NewTwin, Report


class ChangeKind(StrEnum):
    """What a row does."""

    CREATE_TOPIC = "create topic"
    ADD_PARTITIONS = "add partitions"
    SET_SETTING = "set setting"
    RESET_SETTING = "reset setting"
    ADD_ACL = "add acl"
    REMOVE_ACL = "remove acl"
    SET_QUOTA = "set quota"
    REMOVE_QUOTA = "remove quota"
    DELETE_TOPIC = "delete topic"


@dataclass(frozen=True, slots=True)
class Change:
    """One row: of `resource`, what is called `name` goes from `before` to `after`; None is "not there"."""

    kind: ChangeKind
    resource: str
    name: str
    before: str | None
    after: str | None
    note: str | None = None
    """Why, where the source does not say it."""

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "resource": self.resource,
            "name": self.name,
            "from": self.before,
            "to": self.after,
            "note": self.note,
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Change:
        return cls(ChangeKind(said["kind"]), said["resource"], said["name"], said["from"], said["to"], said["note"])


@dataclass(frozen=True)
class SyncPlan:
    """Every difference of one flow, in the order in which it is put right."""

    create: tuple[NewTwin, ...] = ()
    grow: tuple[Growth, ...] = ()
    settings: tuple[SettingChange, ...] = ()
    add_acls: tuple[Acl, ...] = ()
    remove_acls: tuple[Acl, ...] = ()
    quotas: tuple[QuotaChange, ...] = ()
    delete: tuple[Deletion, ...] = ()
    waiting: tuple[Deletion, ...] = ()
    """Deletions that nobody has approved and whose grace period is not over."""
    reports: tuple[Report, ...] = ()
    """What no change on the target can put right."""

    @property
    def changes(self) -> list[Change]:
        """The rows, topics first."""
        return [*self._topic_rows(), *self._acl_rows(), *self._quota_rows(), *self._deletion_rows()]

    def _topic_rows(self) -> Iterator[Change]:
        for twin in self.create:
            factor = "the target's default" if twin.replication_factor < 0 else str(twin.replication_factor)
            note = f"replication factor {factor}"
            yield Change(ChangeKind.CREATE_TOPIC, twin.name, "partitions", None, str(twin.partitions), note)
            for key, value in sorted(twin.wanted.values.items()):
                yield Change(ChangeKind.SET_SETTING, twin.name, key, None, value, twin.wanted.notes.get(key))
        for growth in self.grow:
            yield Change(ChangeKind.ADD_PARTITIONS, growth.name, "partitions", str(growth.before), str(growth.after))
        for change in self.settings:
            kind = ChangeKind.RESET_SETTING if change.after is None else ChangeKind.SET_SETTING
            yield Change(kind, change.topic, change.name, change.before, change.after, change.note)

    def _acl_rows(self) -> Iterator[Change]:
        for acl in self.add_acls:
            yield Change(ChangeKind.ADD_ACL, acl.resource, acl.principal, None, acl.rule)
        for acl in self.remove_acls:
            yield Change(ChangeKind.REMOVE_ACL, acl.resource, acl.principal, acl.rule, None)

    def _quota_rows(self) -> Iterator[Change]:
        for change in self.quotas:
            kind = ChangeKind.REMOVE_QUOTA if change.after is None else ChangeKind.SET_QUOTA
            before = None if change.before is None else f"{change.before:g}"
            after = None if change.after is None else f"{change.after:g}"
            yield Change(kind, change.quota.entity_words, change.quota.key, before, after)

    def _deletion_rows(self) -> Iterator[Change]:
        for deletion in self.delete:
            note = f"{deletion.source} is gone from the source"
            yield Change(ChangeKind.DELETE_TOPIC, deletion.name, "topic", deletion.name, None, note)
