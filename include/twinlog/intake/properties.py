"""Java `.properties` text, read as Kafka's own tools read it.

The rules are those of `java.util.Properties.load`: ISO-8859-1, `#` and `!` comments, `=`, `:` or white space
between key and value, a backslash at a line's end that continues it, `\\uXXXX` and the letter escapes, and
a backslash before anything else that simply disappears. Every entry knows the line it began on. A key that is
written twice keeps its last value, and the earlier ones are handed out too, so that none is lost unseen.

    \\# not a comment = a\\
                      b        ->  key "# not a comment", value "ab"
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from twinlog.errors import ImportSourceError

_WHITE = " \t\f"
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# Java ends a line at \n, \r or \r\n and nowhere else; str.splitlines() knows several more.
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Entry:
    """One key and its value, as they mean after unescaping; `line` counts from 1."""

    key: str
    value: str
    line: int


@dataclass(frozen=True)
class Properties:
    """A whole file: `entries` are the ones that count, `shadowed` those whose key comes again below."""

    name: str
    entries: tuple[Entry, ...]
    shadowed: tuple[Entry, ...]

    def as_dict(self) -> dict[str, str]:
        return {entry.key: entry.value for entry in self.entries}


def read(path: Path) -> Properties:
    """The file at `path`; `ImportSourceError` where it cannot be opened or holds a broken escape."""
    try:
        text = path.read_bytes().decode("latin-1")
    except OSError as error:
        raise ImportSourceError(f"{path} could not be read: {error.strerror or error}.") from error
    return parse(text, str(path))


def parse(text: str, name: str = "properties") -> Properties:
    """The entries of `text`; `name` is what messages call it."""
    last: dict[str, Entry] = {}
    shadowed: list[Entry] = []
    for number, line in _logical_lines(text):
        raw_key, raw_value = _split(line)
        where = f"{name}:{number}"
        entry = Entry(_unescape(raw_key, where), _unescape(raw_value, where), number)
        if (earlier := last.pop(entry.key, None)) is not None:
            shadowed.append(earlier)
        last[entry.key] = entry
    return Properties(name, tuple(sorted(last.values(), key=lambda e: e.line)), tuple(shadowed))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations joined; comments and blank lines are gone."""
    pieces: list[str] = []
    first = 0
    for number, raw in enumerate(_LINE_END.split(text), start=1):
        line = raw.lstrip(_WHITE)
        if not pieces:
            # A comment or a blank line counts as one only where no line is being continued.
            if not line or line[0] in "#!":
                continue
            first = number
        if _ends_in_odd_backslashes(line):
            pieces.append(line[:-1])
            continue
        yield first, "".join([*pieces, line])
        pieces = []
    if pieces:
        yield first, "".join(pieces)


def _ends_in_odd_backslashes(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    """Key and value, still escaped: the key ends at the first unescaped `=`, `:` or white space."""
    end = 0
    while end < len(line) and line[end] not in "=:" + _WHITE:
        end += 2 if line[end] == "\\" else 1
    end = min(end, len(line))
    rest = line[end:].lstrip(_WHITE)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_WHITE)
    return line[:end], rest


def _unescape(text: str, where: str) -> str:
    if "\\" not in text:
        return text
    result: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char != "\\":
            result.append(char)
            continue
        escaped = text[at : at + 1]
        at += 1
        if escaped == "u":
            digits = text[at : at + 4]
            if not re.fullmatch("[0-9a-fA-F]{4}", digits):
                raise ImportSourceError(
                    f"{where}: \\u must be followed by four hexadecimal digits; for a backslash, write two."
                )
            result.append(chr(int(digits, 16)))
            at += 4
        else:
            result.append(_LETTERS.get(escaped, escaped))
    # Java strings are UTF-16: a pair of \u escapes may mean one character.
    return "".join(result).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
