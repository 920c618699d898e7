"""The Schema Registry's topic, read as the registry reads it: which schema every id stands for.

    key    {"keytype": "SCHEMA", "subject": "orders-value", "version": 3, "magic": 1}
    value  {"subject": "orders-value", "version": 3, "id": 17, "schema": "...", "schemaType": "AVRO", "deleted": false}

Records in Confluent's format begin with a zero byte and four bytes of such an id, so an id must stand for the same
schema on every cluster that the records come to. Two registries that register on their own give the same id to
different schemas: that is a conflict, and nothing can be mirrored over it.

A subject of a context (`:.emea:orders-value`) has ids of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

MAGIC = b"\x00"
PREFIX_BYTES = 5
_SCHEMA = "SCHEMA"


class SchemaId(NamedTuple):
    """An id, and the context that it is given in."""

    context: str
    number: int

    def __str__(self) -> str:
        return f"{self.number} of context {self.context}" if self.context else str(self.number)


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """One version of one subject."""

    subject: str
    version: int
    id: SchemaId
    schema: str
    schema_type: str = "AVRO"
    references: str = "[]"

    @property
    def meaning(self) -> tuple[str, str, str]:
        """What must be the same wherever the id is used."""
        return self.schema_type, self.schema, self.references

    def __str__(self) -> str:
        return f"subject {self.subject} version {self.version}"


@dataclass(frozen=True)
class Schemas:
    """All that a registry's topic holds; deleted versions too, since records go on using their ids."""

    versions: Mapping[tuple[str, int], RegisteredSchema]

    @property
    def ids(self) -> dict[SchemaId, RegisteredSchema]:
        return {one.id: one for one in self.versions.values()}


class Conflict(NamedTuple):
    """Two schemas that can't both be right; one on each side."""

    what: str
    here: RegisteredSchema
    there: RegisteredSchema


def read_schemas(records: Iterable[tuple[bytes | None, bytes | None]]) -> Schemas:
    """From the topic's keys and values in order; the last record of a key counts, and other kinds of records don't."""
    found: dict[tuple[str, int], RegisteredSchema] = {}
    for key, value in records:
        place = _place(key)
        if place is None:
            continue
        if value is None:
            found.pop(place, None)
        elif (one := _version(place, value)) is not None:
            found[place] = one
    return Schemas(found)


def conflicts(here: Schemas, there: Schemas) -> Iterator[Conflict]:
    """Ids, and versions of subjects, that stand for one schema here and for another there."""
    elsewhere = there.ids
    for number, one in sorted(here.ids.items()):
        other = elsewhere.get(number)
        if other is not None and other.meaning != one.meaning:
            yield Conflict(f"schema id {number}", one, other)
    for place, one in sorted(here.versions.items()):
        other = there.versions.get(place)
        if other is not None and other.id != one.id:
            yield Conflict(f"{one}, which has id {one.id} on the one side and {other.id} on the other", one, other)


def id_of(data: bytes | None) -> int | None:
    """The schema id that a key or a value begins with; None where it does not look like one."""
    if data is None or len(data) < PREFIX_BYTES or data[:1] != MAGIC:
        return None
    return int.from_bytes(data[1:PREFIX_BYTES], "big")


def ids_in(values: Iterable[bytes | None]) -> dict[int, int]:
    """How many of the values begin with each id; nothing where any of them does not: such a topic's zero bytes mean
    something else."""
    found: dict[int, int] = {}
    for value in values:
        if value is None:
            continue
        number = id_of(value)
        if not number:
            return {}
        found[number] = found.get(number, 0) + 1
    return found


def _place(key: bytes | None) -> tuple[str, int] | None:
    try:
        said = json.loads(key or b"null")
        if isinstance(said, dict) and said.get("keytype") == _SCHEMA:
            return str(said["subject"]), int(said["version"])
    except (ValueError, KeyError, TypeError):
        return None
    return None


def _version(place: tuple[str, int], value: bytes) -> RegisteredSchema | None:
    subject, version = place
    try:
        said = json.loads(value)
        return RegisteredSchema(
            subject,
            version,
            SchemaId(_context(subject), int(said["id"])),
            str(said["schema"]),
            str(said.get("schemaType") or "AVRO"),
            json.dumps(said.get("references") or [], sort_keys=True),
        )
    except (ValueError, KeyError, TypeError):
        return None


def _context(subject: str) -> str:
    """`:.emea:orders-value` is of context `.emea`; without one, of the default."""
    return subject[1:].partition(":")[0] if subject.startswith(":.") else ""
