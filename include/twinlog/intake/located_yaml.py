"""YAML in which every key and value knows its line.

Nothing is guessed from how a scalar looks: `no`, `on`, `3` and `1.10` stay the texts people wrote, and
whoever knows what is expected reads them. A key written twice in one mapping is a problem, where YAML would
keep the last; anchors and `<<` merges work, and what stands beside a merge is stronger than what it brings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

_MERGE = "tag:yaml.org,2002:merge"
_NULLS = ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True, order=True)
class Problem:
    """Something wrong on a line; problems sort as they stand in the file."""

    line: int
    text: str


class YamlProblemError(Exception):
    """The file is not YAML, so that nothing in it can be looked at; never leaves this package."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.text)
        self.problem = problem


@dataclass(frozen=True)
class Scalar:
    """One text; None where nothing was written (`key:`, `~`, `null`)."""

    text: str | None
    line: int


@dataclass(frozen=True)
class Sequence:
    """A list."""

    items: tuple[Value, ...]
    line: int


@dataclass(frozen=True)
class Entry:
    """One key of a mapping, and its value."""

    key: str
    line: int
    value: Value


@dataclass(frozen=True)
class Mapping:
    """Keys and values in the order they are written, each key once."""

    entries: tuple[Entry, ...]
    line: int


Value = Scalar | Sequence | Mapping


def read(path: Path, problems: list[Problem]) -> Value | None:
    """The file's one document, or None where it is empty; problems that leave it readable are added."""
    try:
        root = yaml.compose(_decoded(path), Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        raise YamlProblemError(_syntax_problem(error)) from error
    except yaml.reader.ReaderError as error:
        raise YamlProblemError(Problem(1, f"the character #x{error.character:04x} is not allowed in YAML")) from error
    return None if root is None else _Reader(problems).value(root)


def flatten(mapping: Mapping, prefix: str = "") -> Iterator[Entry]:
    """The entries with nested keys joined by dots: `sync: {configs: true}` is `sync.configs: true`."""
    for entry in mapping.entries:
        key = f"{prefix}{entry.key}"
        if isinstance(entry.value, Mapping):
            yield from flatten(entry.value, f"{key}.")
        else:
            yield Entry(key, entry.line, entry.value)


def kind_name(value: Value) -> str:
    """What a value is, in the words of messages."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, Sequence):
        return "a list"
    return "nothing" if value.text is None else f'"{value.text}"'


def _decoded(path: Path) -> str:
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = data[error.start]
        raise YamlProblemError(Problem(line, f"the file is not UTF-8 (byte 0x{byte:02x}); save it as UTF-8")) from error


def _syntax_problem(error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    what = error.problem or error.context or "cannot be read"
    if "'\\t'" in what:
        what = "a tab stands where spaces must; YAML indents with spaces"
    return Problem(line, f"not YAML: {what}")


class _Reader:
    """Turns YAML's nodes into values, and collects what is wrong with them."""

    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems
        self._open: set[int] = set()

    def value(self, node: yaml.Node) -> Value:
        line = node.start_mark.line + 1
        if id(node) in self._open:
            raise YamlProblemError(Problem(line, "an anchor contains itself"))
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return Mapping(tuple(self._entries(node)), line)
            if isinstance(node, yaml.SequenceNode):
                return Sequence(tuple(self.value(item) for item in node.value), line)
            plain = isinstance(node, yaml.ScalarNode) and node.style is None
            return Scalar(None if plain and node.value in _NULLS else node.value, line)
        finally:
            self._open.remove(id(node))

    def _entries(self, node: yaml.MappingNode) -> list[Entry]:
        written: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag == _MERGE:
                for entry in self._merged(value_node, line):
                    merged.setdefault(entry.key, entry)
            elif not isinstance(key_node, yaml.ScalarNode):
                self._problems.append(Problem(line, "a key must be a text, not a list or a mapping"))
            elif key_node.value in written:
                first = written[key_node.value].line
                self._problems.append(Problem(line, f"{key_node.value}: written twice, first on line {first}"))
            else:
                written[key_node.value] = Entry(key_node.value, line, self.value(value_node))
        return [*written.values(), *(entry for key, entry in merged.items() if key not in written)]

    def _merged(self, node: yaml.Node, line: int) -> Iterator[Entry]:
        value = self.value(node)
        for part in value.items if isinstance(value, Sequence) else (value,):
            if isinstance(part, Mapping):
                yield from part.entries
            else:
                self._problems.append(Problem(line, f"<<: expected a mapping to merge, not {kind_name(part)}"))
