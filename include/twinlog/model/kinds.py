"""The kinds of value a setting can have.

A kind turns what people wrote (one text, or a list of texts) into the value the code uses, or raises a
`SettingError` that says what was expected. Texts, not YAML's guesses, are the input, so that `3` and `"3"`, a
MirrorMaker 2 property and a topology file all mean the same.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from twinlog.errors import SettingError
from twinlog.model.schedule import longest_gap_s

Raw = str | Sequence[str]

_SEPARATOR = re.compile(r"[._-]+")
_ENTRY_POINT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_TOPIC_CHARACTERS = re.compile(r"[A-Za-z0-9._-]*")
PRESETS = ("@continuous", "@hourly", "@daily", "@weekly", "@monthly", "@yearly")
_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")


class Kind(Protocol):
    """What a setting's value may be."""

    @property
    def label(self) -> str:
        """How docs/settings.md names the kind."""

    def parse(self, raw: Raw) -> object:
        """The value, or a SettingError."""


def one_text(raw: Raw) -> str:
    """The single text that was written; a list is an error."""
    if isinstance(raw, str):
        return raw
    raise SettingError("expected one value, not a list")


def nearest(word: str, words: Sequence[str]) -> str | None:
    """The known word that is spelt most like this one, if any is close."""
    folded = {known.lower(): known for known in words}
    close = difflib.get_close_matches(word.lower(), list(folded), n=1, cutoff=0.6)
    return folded[close[0]] if close else None


@dataclass(frozen=True)
class Text:
    """Any text that is not empty."""

    label: str = "text"

    def parse(self, raw: Raw) -> str:
        text = one_text(raw).strip()
        if not text:
            raise SettingError("expected a text, not an empty one")
        return text


@dataclass(frozen=True)
class Boolean:
    """true or false, and nothing else that could be taken for them."""

    label: str = "true or false"

    def parse(self, raw: Raw) -> bool:
        text = one_text(raw).strip().lower()
        if text in ("true", "false"):
            return text == "true"
        meant = {"yes": "true", "on": "true", "1": "true", "no": "false", "off": "false", "0": "false"}
        raise SettingError(
            f'expected true or false, not "{one_text(raw)}"',
            meant.get(text) or nearest(text, ("true", "false")),
        )


@dataclass(frozen=True)
class Integer:
    """A whole number, not below `minimum` and, where there is one, not above `maximum`."""

    minimum: int = 0
    maximum: int | None = None

    @property
    def label(self) -> str:
        return f"whole number, {self._bounds}"

    def parse(self, raw: Raw) -> int:
        text = one_text(raw).strip()
        if not re.fullmatch(r"[+-]?[0-9]+", text):
            raise SettingError(f'expected a whole number, not "{text}"')
        number = int(text)
        if number < self.minimum or (self.maximum is not None and number > self.maximum):
            raise SettingError(f"expected {self._bounds}, not {number}")
        return number

    @property
    def _bounds(self) -> str:
        return f"{self.minimum} or more" if self.maximum is None else f"{self.minimum} to {self.maximum}"


@dataclass(frozen=True)
class PositiveNumber:
    """A number above zero, with or without decimals."""

    label: str = "number above 0"

    def parse(self, raw: Raw) -> float:
        text = one_text(raw).strip()
        if not re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)", text):
            raise SettingError(f'expected a number, not "{text}"')
        number = float(text)
        if number <= 0:
            raise SettingError(f"expected a number above 0, not {text}")
        return number


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    options: tuple[str, ...]

    @property
    def label(self) -> str:
        return " or ".join(f"`{option}`" for option in self.options)

    def parse(self, raw: Raw) -> str:
        text = one_text(raw).strip()
        if text not in self.options:
            raise SettingError(f'expected {_either(self.options)}, not "{text}"', nearest(text, self.options))
        return text


@dataclass(frozen=True)
class ReplicationFactor:
    """A number of replicas, or the word that says whose number to take; Kafka's own -1 means `target`."""

    label: str = "whole number, 1 or more, or `source` or `target`"

    def parse(self, raw: Raw) -> int | str:
        text = one_text(raw).strip()
        if text in ("source", "target"):
            return text
        if text == "-1":
            return "target"
        if not re.fullmatch(r"[0-9]+", text) or int(text) < 1:
            raise SettingError(
                f'expected a whole number, 1 or more, or "source" or "target", not "{text}"',
                nearest(text, ("source", "target")),
            )
        return int(text)


@dataclass(frozen=True)
class Patterns:
    """Regular expressions, each of which must match a whole name; a list, or one text with commas between."""

    label: str = "list of patterns"

    def parse(self, raw: Raw) -> tuple[str, ...]:
        patterns = tuple(split_list(raw))
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise SettingError(f'"{pattern}" is not a regular expression: {error}') from error
        return patterns


@dataclass(frozen=True)
class Separator:
    """What stands between an alias and a topic's name: characters that a topic's name may hold."""

    label: str = "`.`, `_` or `-`, one or more of them"

    def parse(self, raw: Raw) -> str:
        text = one_text(raw)
        if not _SEPARATOR.fullmatch(text):
            raise SettingError(f'expected one or more of ".", "_" and "-", not "{text}"')
        return text


@dataclass(frozen=True)
class TopicFormat:
    """A name with `${topic}` in it once, and `${source}` and `${target}` (the aliases) where wanted."""

    label: str = "name with `${topic}` in it"

    def parse(self, raw: Raw) -> str:
        text = one_text(raw).strip()
        names = _PLACEHOLDER.findall(text)
        for name in names:
            if name not in ("topic", "source", "target"):
                raise SettingError(
                    f'"${{{name}}}" is not known here; ${{topic}}, ${{source}} and ${{target}} are',
                    nearest(name, ("topic", "source", "target")),
                )
        if names.count("topic") != 1:
            raise SettingError(f'"{text}" must hold ${{topic}} exactly once, or topics would share a name')
        if text == "${topic}":
            raise SettingError('"${topic}" changes no name; write naming: identity')
        if not _TOPIC_CHARACTERS.fullmatch(_PLACEHOLDER.sub("", text)):
            raise SettingError(f'"{text}" holds a character that no topic name may; use letters, digits, ".", "_", "-"')
        return text


@dataclass(frozen=True)
class EntryPoint:
    """Where a Python object is: `package.module:Name`."""

    label: str = "`package.module:Name`"

    def parse(self, raw: Raw) -> str:
        text = one_text(raw).strip()
        if not _ENTRY_POINT.fullmatch(text):
            raise SettingError(f'expected "package.module:Name", not "{text}"')
        return text


@dataclass(frozen=True)
class Schedule:
    """When a flow runs: five cron fields, or one of Airflow's presets."""

    label: str = "cron expression or `@continuous`"

    def parse(self, raw: Raw) -> str:
        text = " ".join(one_text(raw).split())
        try:
            longest_gap_s(text)
        except ValueError as error:
            raise SettingError(str(error), nearest(text, PRESETS) if text.startswith("@") else None) from error
        return text


def split_list(raw: Raw) -> list[str]:
    """The parts of a list; in one text, commas divide them, as in MirrorMaker 2's properties."""
    parts = raw.split(",") if isinstance(raw, str) else raw
    return [part.strip() for part in parts if part.strip()]


def _either(options: Sequence[str]) -> str:
    quoted = [f'"{option}"' for option in options]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
