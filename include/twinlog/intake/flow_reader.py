"""Reads the flows of a topology file, and the defaults they share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Set
from dataclasses import dataclass, field
from typing import Any

from twinlog.errors import SettingError
from twinlog.intake import located_yaml
from twinlog.intake.cluster_reader import ALIAS, client_value
from twinlog.intake.located_yaml import Entry, Scalar, Sequence, flatten, kind_name
from twinlog.intake.problems import Problems
from twinlog.model import references
from twinlog.model.client_settings import check_flow_property
from twinlog.model.kinds import Raw, nearest
from twinlog.model.settings import Setting, settings_of
from twinlog.model.topology import Flow

_SETTINGS = settings_of(Flow)
_BY_KEY = {key: item for item in _SETTINGS.values() for key in (item.name, *item.aliases)}
_CLIENT_PREFIXES = ("consumer.", "producer.", "admin.", "source.", "target.")


@dataclass
class Given:
    """What a mapping of flow settings says: parsed values, client properties, and the line of each key."""

    values: dict[str, Any] = field(default_factory=dict)
    overrides: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def over(self, weaker: Given) -> Given:
        """These settings, and the weaker ones where these say nothing."""
        return Given(
            {**weaker.values, **self.values},
            {**weaker.overrides, **self.overrides},
            {**weaker.lines, **self.lines},
        )


def read_settings(key: str, value: located_yaml.Value, problems: Problems) -> Given:
    """The settings of one flow, or of `defaults`."""
    given = Given()
    if isinstance(value, Scalar) and value.text is None:
        return given
    if not isinstance(value, located_yaml.Mapping):
        problems.add(value.line, f"{key}: expected settings, not {kind_name(value)}")
        return given
    for item in flatten(value):
        known = _BY_KEY.get(item.key)
        name = known.name if known else item.key
        if name in given.lines:
            same = "written twice" if name == item.key else f"the same setting as {name}, which is written too"
            problems.add(item.line, f"{item.key}: {same}; the other is on line {given.lines[name]}")
            continue
        given.lines[name] = item.line
        if known is not None:
            _read_value(item, known, given, problems)
        elif item.key.startswith(_CLIENT_PREFIXES):
            given.overrides[item.key] = client_value(item, problems, _check_client_key)
        else:
            close = nearest(item.key, list(_BY_KEY))
            hint = f'; did you mean "{close}"?' if close else ""
            problems.add(item.line, f"{item.key}: unknown setting{hint}")
    return given


def read_flow(
    entry: Entry, defaults: Given, aliases: Collection[str], problems: Problems, place: Callable[[str], str]
) -> Flow | None:
    """The flow, or None where its name is none; what is wrong is added to the problems."""
    given = read_settings(entry.key, entry.value, problems).over(defaults)
    source, arrow, target = entry.key.partition("->")
    if not arrow or not source or not target or "->" in target:
        hint = _meant_flow(entry.key, aliases)
        problems.add(entry.line, f'{entry.key}: a flow is written "source->target"{hint}')
        return None
    if (source.strip(), target.strip()) != (source, target):
        meant = f"{source.strip()}->{target.strip()}"
        problems.add(entry.line, f'{entry.key}: a flow is written without spaces; did you mean "{meant}"?')
        return None
    if source == target:
        problems.add(entry.line, f"{entry.key}: a flow cannot go from a cluster to itself")
        return None
    for alias in (source, target):
        if alias not in aliases:
            close = nearest(alias, list(aliases))
            hint = f'; did you mean "{close}"?' if close else ""
            problems.add(entry.line, f'{entry.key}: no cluster is called "{alias}"{hint}')
    if "ledger" in given.values:
        given.values["ledger"] = place(given.values["ledger"])
    attributes = {_SETTINGS[name].attribute: value for name, value in given.values.items()}
    flow = Flow(source, target, overrides=given.overrides, **attributes)
    unread = given.lines.keys() - given.values.keys()
    for name, problem in _contradictions(flow, aliases, unread):
        problems.add(given.lines.get(name, entry.line), f"{name}: {problem}")
    return flow


def _meant_flow(key: str, aliases: Collection[str]) -> str:
    pairs = [f"{source}->{target}" for source in aliases for target in aliases if source != target]
    close = nearest(key, pairs)
    return f'; did you mean "{close}"?' if close else ""


def _check_client_key(key: str) -> None:
    check_flow_property(key, list(_BY_KEY))


def _read_value(item: Entry, known: Setting, given: Given, problems: Problems) -> None:
    raw = _raw(item, problems)
    if raw is None:
        return
    try:
        given.values[known.name] = known.kind.parse(raw)
    except SettingError as error:
        problems.add(item.value.line, f"{item.key}: {error}")


def _raw(item: Entry, problems: Problems) -> Raw | None:
    """The text or texts of a value, references resolved; None where there is nothing to go on with."""
    parts = item.value.items if isinstance(item.value, Sequence) else (item.value,)
    texts: list[str] = []
    before = len(problems.found)
    for part in parts:
        if not isinstance(part, Scalar) or part.text is None:
            problems.add(part.line, f"{item.key}: expected a value, not {kind_name(part)}")
            continue
        texts.append(problems.resolve(item.key, part.text, part.line))
        for reference in references.find(part.text):
            if reference.provider == "file":
                problems.add(part.line, f"{item.key}: ${{file:...}} works in client properties only")
    if len(problems.found) > before:
        return None
    return texts if isinstance(item.value, Sequence) else texts[0]


def _contradictions(flow: Flow, aliases: Collection[str], unread: Set[str]) -> Iterator[tuple[str, str]]:
    """Settings that are right by themselves and wrong together; those that could not be read are not judged."""
    if not flow.topics and flow.topic_filter is None:
        yield "topics", "expected at least one pattern"
    if not unread & {"naming", "naming.format", "naming.policy"}:
        yield from _naming_contradictions(flow, aliases)
    if flow.route != "records" and "route" not in unread:
        for name, given in (("where", flow.where), ("select", flow.select)):
            if given is not None:
                yield name, "works with route: records only"
        if flow.provenance != "none":
            yield "provenance", "headers can be added with route: records only"


def _naming_contradictions(flow: Flow, aliases: Collection[str]) -> Iterator[tuple[str, str]]:
    if flow.naming == "custom":
        if flow.naming_format is None and flow.naming_policy is None:
            yield "naming", "custom needs naming.format or naming.policy"
        if flow.naming_format is not None and flow.naming_policy is not None:
            yield "naming.policy", "naming.format is written too; one of them must go"
    else:
        for name, given in (("naming.format", flow.naming_format), ("naming.policy", flow.naming_policy)):
            if given is not None:
                yield name, f"works with naming: custom only, and naming is {flow.naming}"
    if flow.naming == "prefixed":
        separator = flow.replication_policy_separator
        for alias in aliases:
            if separator in alias and ALIAS.fullmatch(alias):
                problem = f'"{separator}" is part of the alias "{alias}", so names could not be taken apart again'
                yield "replication.policy.separator", problem
