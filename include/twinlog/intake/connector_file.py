"""A connector's configuration, from JSON or from properties, as its keys with their places.

JSON is what Kafka Connect's REST interface takes and gives: `{"name": ..., "config": {...}}`, the
configuration alone, or a list of either. A key that a properties file has twice is there once, with its last
value, and the earlier ones are in `shadowed`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from twinlog.errors import ImportSourceError
from twinlog.intake import properties
from twinlog.intake.credentials import Credentials
from twinlog.intake.imported import Written


@dataclass(frozen=True)
class Connector:
    """One connector, or one whole properties file."""

    file: str
    values: dict[str, Written]
    shadowed: tuple[Written, ...] = ()


def read_connectors(path: Path) -> list[Connector]:
    """All connectors of a file; JSON is told by its first character, as people name such files anyhow."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ImportSourceError(f"{path} could not be read: {error.strerror or error}.") from error
    if content.lstrip()[:1] in (b"{", b"["):
        return _from_json(content, str(path))
    read = properties.parse(content.decode("latin-1"), str(path))
    if not read.entries:
        raise ImportSourceError(f"{path} holds no setting.")
    values = {entry.key: Written(entry.key, entry.value, str(path), entry.line) for entry in read.entries}
    shadowed = tuple(Written(entry.key, entry.value, str(path), entry.line) for entry in read.shadowed)
    return [Connector(str(path), values, shadowed)]


def credentials_of(connectors: Iterable[Connector]) -> Credentials:
    """Credentials that know the config providers these connectors declare."""
    classes: dict[str, str] = {}
    for connector in connectors:
        for key, written in connector.values.items():
            if key.startswith("config.providers.") and key.endswith(".class"):
                classes[key.removeprefix("config.providers.").removesuffix(".class")] = written.value
    return Credentials(classes)


def _from_json(content: bytes, file: str) -> list[Connector]:
    try:
        document = json.loads(content)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ImportSourceError(f"{file} is not valid JSON: {error}.") from error
    return [_connector(item, file) for item in (document if isinstance(document, list) else [document])]


def _connector(item: object, file: str) -> Connector:
    if not isinstance(item, dict):
        raise ImportSourceError(f"{file} must hold a connector: an object with its configuration.")
    config = item.get("config", item)
    if not isinstance(config, dict) or not config:
        raise ImportSourceError(f"{file}: config must be an object with the connector's settings.")
    named = {"name": item["name"]} if config is not item and "name" in item and "name" not in config else {}
    return Connector(file, _written({**named, **config}, file))


def _written(config: Mapping[str, object], file: str) -> dict[str, Written]:
    return {key: Written(key, _text(key, value, file), file) for key, value in config.items()}


def _text(key: str, value: object, file: str) -> str:
    """Numbers and truth values as their text, null as an empty one."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise ImportSourceError(f"{file}: {key} must be a text, a number, true or false, as Kafka Connect has it.")
