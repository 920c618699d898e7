"""Builds a topology out of another mirror's settings, and writes it as YAML.

A `Draft` only takes what the topology's own reader would take: flow settings go through their kind, client
properties through `Credentials`. Every `Written` handed to it ends as taken or as left out, once.
"""

from __future__ import annotations

import re
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from twinlog.errors import ImportSourceError, SettingError
from twinlog.intake.cluster_reader import ALIAS
from twinlog.intake.credentials import Credentials, UnknownProviderError
from twinlog.intake.imported import Imported, LeftOut, Taken, Written, masked
from twinlog.model import references
from twinlog.model.client_settings import check_cluster_property, check_flow_property
from twinlog.model.clients import kind_of
from twinlog.model.flow import Flow
from twinlog.model.kinds import Patterns, Raw
from twinlog.model.settings import settings_of

FLOW_SETTINGS = settings_of(Flow)
_WIDTH = 100
_PROVIDER = re.compile(r"\$\{\w+:")
Place = tuple[tuple[str, ...], dict[str, Any]]
"""A mapping of the topology and the path to it."""


class Draft:
    """A topology that is being put together."""

    def __init__(self, credentials: Credentials) -> None:
        self.clusters: dict[str, dict[str, str]] = {}
        self.defaults: dict[str, Any] = {}
        self.flows: dict[str, dict[str, Any]] = {}
        self._credentials = credentials
        self._taken: list[Taken] = []
        self._left_out: list[LeftOut] = []
        self._notes: list[str] = []

    def leave_out(self, written: Written, reason: str) -> None:
        value = masked(written.key, written.value)
        self._left_out.append(LeftOut(written.key, value, reason, written.place))

    def note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)

    def take(self, written: Written, *path: str) -> None:
        """Says that `written` is expressed by what stands at `path`, and needs no value of its own there."""
        self._taken.append(Taken(written.key, path, written.place))

    def cluster_property(self, aliases: Sequence[str], key: str, written: Written) -> None:
        """A client property, `bootstrap.servers` included, of one cluster or of several that share it."""
        places = [(("clusters", alias), self.clusters.setdefault(alias, {})) for alias in aliases]
        # One variable serves all where the input has the secret once.
        self._client_property(places, aliases[0] if len(aliases) == 1 else "kafka", key, written)

    def flow_property(self, flow: str, key: str, written: Written) -> None:
        """A client property that holds for one flow: `source.consumer.fetch.max.bytes`."""
        self._client_property([(("flows", flow), self.flows.setdefault(flow, {}))], flow, key, written)

    def default_setting(self, name: str, written: Written, value: Raw | None = None) -> None:
        """A flow setting for all flows; `value` is what it says in Twinlog's words, where that differs."""
        self._setting([(("defaults",), self.defaults)], name, written, value)

    def flow_setting(self, flows: Sequence[str], name: str, written: Written, value: Raw | None = None) -> None:
        """A setting of one flow or of several."""
        self._setting([(("flows", flow), self.flows.setdefault(flow, {})) for flow in flows], name, written, value)

    def finish(self, header: Sequence[str]) -> Imported:
        """The result; `header` are sentences for the comment at its top."""
        for alias in self.clusters:
            if not ALIAS.fullmatch(alias):
                raise ImportSourceError(
                    f'The alias "{alias}" cannot be kept: Twinlog\'s are made of letters, digits, "_" and "-"; '
                    f"rename it in the input, and mind that names of mirrored topics change with it."
                )
        for flow, settings in self.flows.items():
            if settings.get("enabled") is False:
                self.note(f"{flow} is off, as it is in the input.")
        self._note_java_stores()
        variables = self._credentials.variables
        if variables:
            self.note(
                "Secrets were not copied. Set these environment variables before use: " + ", ".join(variables) + "."
            )
        document: dict[str, Any] = {"clusters": self.clusters, "ledger": "./ledger"}
        if self.defaults:
            document["defaults"] = self.defaults
        document["flows"] = self.flows
        body = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=_WIDTH)
        return Imported(
            topology_yaml=_comment([*header, *self._notes]) + body,
            left_out=tuple(self._left_out),
            taken=tuple(self._taken),
            variables=variables,
            notes=tuple(self._notes),
        )

    def _note_java_stores(self) -> None:
        """Java's key stores are carried over as they are written, but only PEM files can be read here."""
        for where, settings in {**self.clusters, **self.flows}.items():
            for key in settings:
                role, found, kind = key.rpartition("ssl.")
                if not found or kind not in ("truststore.location", "keystore.location"):
                    continue
                store_type = settings.get(f"{role}ssl.{kind.removesuffix('location')}type", "JKS")
                if str(store_type).upper() != "PEM":
                    self.note(
                        f"{where}: {key} is a {store_type} store, which Twinlog can't read: convert it to PEM and "
                        f"set {key.removesuffix('location')}type to PEM; the first connection says with which command."
                    )

    def _client_property(self, places: Sequence[Place], owner: str, key: str, written: Written) -> None:
        value = written.value.strip()
        if key == "bootstrap.servers":
            # Java's clients allow PLAINTEXT://host:port, and ignore the protocol.
            value = re.sub(r"\w+://", "", value)
        if not value:
            self.leave_out(written, "it has no value")
            return
        try:
            properties = self._credentials.rewritten(owner, key, value)
            for name, text in properties.items():
                _check_property(places[0][0][0], name, text)
        except (UnknownProviderError, SettingError) as error:
            self.leave_out(written, str(error))
            return
        self._put(places, properties, written)

    def _setting(self, places: Sequence[Place], name: str, written: Written, value: Raw | None) -> None:
        kind = FLOW_SETTINGS[name].kind
        raw = written.value if value is None else value
        try:
            parsed = _parsed(name, raw)
        except SettingError as error:
            if isinstance(kind, Patterns):
                # Left out, it would silently mirror more, or less, than the input does.
                raise ImportSourceError(
                    f"{written.place}: {written.key}: {error}; patterns are Python's here: correct it, then import."
                ) from error
            self.leave_out(written, f"Twinlog does not accept the value: {error}")
            return
        self._put(places, {name: parsed}, written)

    def _put(self, places: Sequence[Place], values: Mapping[str, Any], written: Written) -> None:
        """Writes the values wherever nothing else stands; what stands was more specific or came first."""
        *_, name = values
        free = [(path, there) for path, there in places if all(there.get(n, v) == v for n, v in values.items())]
        if not free:
            place = ".".join(places[0][0])
            self.leave_out(written, f"{place} already has another value for {name}, and it can have one only")
            return
        for _, there in free:
            there.update(values)
        self.take(written, *free[0][0], name)


def _check_property(section: str, name: str, text: str) -> None:
    """Raise a SettingError unless the topology's reader will take the property."""
    if section == "flows":
        check_flow_property(name)
    elif name == "bootstrap.servers":
        return
    else:
        check_cluster_property(name)
    if not any(references.find(text)):
        kind_of(references.without_role(name)).parse(text)


def _parsed(name: str, raw: Raw) -> Any:
    """A flow setting's value as YAML can hold it; a SettingError unless it will be taken, and means the same."""
    if _PROVIDER.search(raw if isinstance(raw, str) else ",".join(raw)):
        raise SettingError("only client properties may be kept by a config provider")
    with warnings.catch_warnings():
        # Java's set operations ([a-z&&[^b]]) compile in Python too, with a warning, and mean something else.
        warnings.simplefilter("error", FutureWarning)
        try:
            value = FLOW_SETTINGS[name].kind.parse(raw)
        except FutureWarning as warning:
            raise SettingError(f"the pattern means something else in Python than in Java ({warning})") from warning
    if name == "topics" and not value:
        raise SettingError("no topic is named")
    return list(value) if isinstance(value, tuple) else value


def _comment(paragraphs: Sequence[str]) -> str:
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += textwrap.wrap(paragraph, _WIDTH, initial_indent="# ", subsequent_indent="#   ")
    return "\n".join(lines) + "\n"
