"""Which names a flow takes: patterns to include, patterns to exclude, exclusion stronger.

A pattern matches a whole name, as in MirrorMaker 2. Patterns are compiled once, when the filter is made.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from twinlog.model.flow import Flow

# A name whose only special character is the dot that names are full of can be told apart from a real pattern.
_LITERAL = re.compile(r"(?:[A-Za-z0-9_.-]|\\[.-])+")


class NameFilter(Protocol):
    """Decides over one name; also what `topic.filter`, `group.filter` and `config.filter` name."""

    def accepts(self, name: str) -> bool:
        """Whether the flow takes the topic, group or topic setting of this name."""


class PatternFilter:
    """Accepts what an include pattern matches and no exclude pattern does."""

    def __init__(self, include: Sequence[str], exclude: Sequence[str]) -> None:
        self._include = _any_of(include)
        self._exclude = _any_of(exclude)

    def includes(self, name: str) -> bool:
        """Whether an include pattern matches, exclusion aside."""
        return self._include is not None and self._include.fullmatch(name) is not None

    def excludes(self, name: str) -> bool:
        """Whether an exclude pattern matches."""
        return self._exclude is not None and self._exclude.fullmatch(name) is not None

    def accepts(self, name: str) -> bool:
        return self.includes(name) and not self.excludes(name)


def topic_filter(flow: Flow) -> PatternFilter:
    """The flow's `topics` and `topics.exclude`."""
    return PatternFilter(flow.topics, flow.topics_exclude)


def group_filter(flow: Flow) -> PatternFilter:
    """The flow's `groups` and `groups.exclude`."""
    return PatternFilter(flow.groups, flow.groups_exclude)


def config_filter(flow: Flow) -> PatternFilter:
    """The flow's `config.properties.exclude`; every other topic setting travels."""
    return PatternFilter((".*",), flow.config_properties_exclude)


def literal_names(patterns: Sequence[str]) -> frozenset[str] | None:
    """The names that patterns stand for where each is just a name, None where any is a real pattern.

    An unescaped dot counts as a dot: whoever writes `prod.orders` means that topic.
    """
    if not all(_LITERAL.fullmatch(pattern) for pattern in patterns):
        return None
    return frozenset(re.sub(r"\\(.)", r"\1", pattern) for pattern in patterns)


def _any_of(patterns: Sequence[str]) -> re.Pattern[str] | None:
    # Each in its own group, so that an alternation inside one pattern stays inside.
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None
