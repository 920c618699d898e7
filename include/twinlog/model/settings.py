"""Settings as dataclass fields: the field says its name, default, kind and meaning, and nothing else does.

A dataclass whose fields are made by `setting` is the registry of those settings: the loader reads it to know
which keys exist, `settings_page` to write docs/settings.md.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from twinlog.model.kinds import Kind

_KEY = "twinlog.setting"


@dataclass(frozen=True)
class Setting:
    """One setting: `attribute` is its name with dots and dashes turned into underscores."""

    name: str
    default: Any
    kind: Kind
    doc: str
    section: str
    mm2: bool
    aliases: tuple[str, ...] = ()
    planned: bool = False
    """It is read and checked, and nothing acts on it yet; docs/settings.md and `topology check` say so."""

    @property
    def attribute(self) -> str:
        return self.name.replace(".", "_").replace("-", "_")


def setting(
    name: str,
    default: Any,
    kind: Kind,
    doc: str,
    *,
    section: str,
    mm2: bool = False,
    aliases: tuple[str, ...] = (),
    planned: bool = False,
) -> Any:
    """A dataclass field that is a setting; `mm2` says that the name and meaning are MirrorMaker 2's."""
    described = Setting(name, default, kind, doc, section, mm2, aliases, planned)
    return dataclasses.field(default=default, metadata={_KEY: described})


def settings_of(dataclass_type: type) -> dict[str, Setting]:
    """The settings a dataclass defines, by name, in the order they are written."""
    found = (field.metadata.get(_KEY) for field in dataclasses.fields(dataclass_type))
    return {described.name: described for described in found if isinstance(described, Setting)}
