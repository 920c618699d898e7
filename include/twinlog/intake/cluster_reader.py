"""Reads one cluster of a topology file."""

from __future__ import annotations

import re
from collections.abc import Callable

from twinlog.errors import SettingError
from twinlog.intake.located_yaml import Entry, Mapping, Scalar, Sequence, Value, flatten, kind_name
from twinlog.intake.problems import Problems
from twinlog.model import references
from twinlog.model.client_settings import check_cluster_property
from twinlog.model.clients import kind_of
from twinlog.model.settings import settings_of
from twinlog.model.topology import Cluster

ALIAS = re.compile(r"[A-Za-z0-9_-]+")
_ADDRESS = re.compile(r"(?P<host>\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):(?P<port>[0-9]+)")
_UNKNOWN_REFERENCE = re.compile(r"\$\{(?!env:|file:)(?P<name>[^}]*)\}")
_OWN = settings_of(Cluster)
_NOT_PLAIN = (
    "a secret must not stand in the file; write ${env:NAME} or ${file:/path}, or keep it in the Airflow connection "
    "that `connection` names"
)


def read_cluster(entry: Entry, problems: Problems, place: Callable[[str], str]) -> Cluster:
    """The cluster; what is wrong is added to the problems. `place` makes a relative path absolute."""
    if not ALIAS.fullmatch(entry.key):
        problems.add(entry.line, f'{entry.key}: an alias is made of letters, digits, "_" and "-"')
    if not isinstance(entry.value, Mapping):
        problems.add(entry.line, f"{entry.key}: expected a cluster's settings, not {kind_name(entry.value)}")
        return Cluster(entry.key)
    own: dict[str, str] = {}
    client: dict[str, str] = {}
    written: dict[str, int] = {}
    for item in flatten(entry.value):
        if item.key in written:
            problems.add(item.line, f"{item.key}: written twice, first on line {written[item.key]}")
            continue
        written[item.key] = item.line
        if item.key in _OWN:
            own[item.key] = _own_value(item, problems)
        else:
            client[item.key] = client_value(item, problems, lambda key: check_cluster_property(key, list(_OWN)))
    if "bootstrap.servers" not in written:
        problems.add(entry.line, f"{entry.key}: bootstrap.servers is missing")
    ledger = own.get("ledger")
    return Cluster(
        alias=entry.key,
        bootstrap_servers=own.get("bootstrap.servers", ""),
        connection=own.get("connection"),
        spark=own.get("spark"),
        queue=own.get("queue"),
        pool=own.get("pool"),
        ledger=place(ledger) if ledger else None,
        settings=client,
    )


def client_value(item: Entry, problems: Problems, check: Callable[[str], None]) -> str:
    """A Kafka client property as it is kept: secrets as references, other environment variables resolved."""
    try:
        check(item.key)
    except SettingError as error:
        problems.add(item.line, f"{item.key}: {error}")
        return ""
    if references.is_secret(item.key):
        return _secret(item, problems)
    if not isinstance(item.value, Scalar) or item.value.text is None:
        problems.add(item.line, f"{item.key}: expected one value, not {kind_name(item.value)}")
        return ""
    text = resolved(item.key, item.value.text, item.value.line, problems)
    if any(references.find(text)):
        return text
    try:
        kind_of(references.without_role(item.key)).parse(text)
    except SettingError as error:
        problems.add(item.value.line, f"{item.key}: {error}")
    return text


def resolved(key: str, text: str, line: int, problems: Problems) -> str:
    """A text without `${env:..}`; `${NAME}`, which means nothing here, is a problem."""
    unknown = _UNKNOWN_REFERENCE.search(text)
    if unknown:
        problems.add(line, f'{key}: unknown reference "{unknown[0]}"; did you mean "${{env:{unknown["name"]}}}"?')
    return problems.resolve(key, text, line)


def _secret(item: Entry, problems: Problems) -> str:
    text = item.value.text if isinstance(item.value, Scalar) else None
    if text is None or references.whole(text) is None:
        problems.add(item.line, f"{item.key}: {_NOT_PLAIN}")
        return ""
    return text.strip()


def _own_value(item: Entry, problems: Problems) -> str:
    if item.key == "bootstrap.servers":
        return _bootstrap_servers(item.value, problems)
    if not isinstance(item.value, Scalar) or not item.value.text:
        problems.add(item.line, f"{item.key}: expected one value, not {kind_name(item.value)}")
        return ""
    return resolved(item.key, item.value.text, item.value.line, problems)


def _bootstrap_servers(value: Value, problems: Problems) -> str:
    parts = value.items if isinstance(value, Sequence) else (value,)
    addresses: list[str] = []
    for part in parts:
        if not isinstance(part, Scalar) or not part.text:
            problems.add(part.line, f"bootstrap.servers: expected host:port, not {kind_name(part)}")
            continue
        before = len(problems.found)
        text = resolved("bootstrap.servers", part.text, part.line, problems)
        found = [address.strip() for address in text.split(",")]
        if len(problems.found) == before:
            for address in found:
                _check_address(address, part.line, problems)
        addresses += found
    if not parts:
        problems.add(value.line, "bootstrap.servers: expected at least one host:port")
    return ",".join(addresses)


def _check_address(address: str, line: int, problems: Problems) -> None:
    match = _ADDRESS.fullmatch(address)
    if not match:
        problems.add(line, f'bootstrap.servers: expected host:port, not "{address}"')
    elif not 1 <= int(match["port"]) <= 65535:
        problems.add(line, f'bootstrap.servers: the port of "{address}" is not between 1 and 65535')
