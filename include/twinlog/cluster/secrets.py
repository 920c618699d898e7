"""Secrets: found at the moment a client is made, and kept out of everything that is printed.

Always true here:
- what people write holds references (`${env:NAME}`, `${file:/path}`, `${file:/path:key}`) or the id of an
  Airflow connection; `resolve` alone turns them into values;
- each secret value is remembered in this process, and `mask` takes it out of any text;
- resolved settings neither show nor pickle their secrets: whoever ships work elsewhere ships the references.
"""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from twinlog.cluster.connection_variables import connection_from_environment
from twinlog.cluster.jaas import parse_jaas
from twinlog.errors import ConfigurationError, SecretError
from twinlog.model.references import Reference, find, is_secret

MASK = "********"

ConnectionLookup = Callable[[str], Mapping[str, str]]
"""Airflow connection id -> Kafka client properties."""

_known_forms: frozenset[str] = frozenset()
_remembering = threading.Lock()


class ResolvedSettings(Mapping[str, str]):
    """Kafka client properties with every reference replaced; printed, its secrets are masked."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResolvedSettings) and self._values == other._values

    def __repr__(self) -> str:
        shown = {key: MASK if is_secret(key) else mask(value) for key, value in self._values.items()}
        return f"ResolvedSettings({shown})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("resolved settings hold secrets and are not pickled; ship the references and resolve there")


def resolve(
    settings: Mapping[str, str],
    connection: str | None = None,
    *,
    defaults: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    connections: ConnectionLookup | None = None,
) -> ResolvedSettings:
    """Replace every reference in `settings`, and add what the Airflow connection holds beside them.

    Strongest first: what people wrote, what the connection holds, the `defaults`.
    """
    environ = os.environ if environ is None else environ
    merged: dict[str, str] = dict(defaults or {})
    if connection is not None:
        look_up = connections or (lambda name: connection_from_environment(name, environ))
        merged.update(look_up(connection))
    merged.update(settings)
    values = {key: _substitute(key, value, environ) for key, value in merged.items()}
    remember_all(values)
    return ResolvedSettings(values)


def remember_all(settings: Mapping[str, str]) -> None:
    """Have `mask` take out every secret among these settings."""
    for key, value in settings.items():
        if is_secret(key):
            remember(value)
    if "sasl.jaas.config" in settings:
        _remember_login(settings["sasl.jaas.config"])


def remember(secret: str) -> None:
    """Have `mask` take this value out of any text from now on, also where it is escaped or in a URL."""
    global _known_forms  # noqa: PLW0603 - the one place that knows all secrets of the process
    if secret:
        forms = {secret, quote(secret, safe=""), repr(secret)[1:-1], json.dumps(secret)[1:-1]}
        with _remembering:
            _known_forms = _known_forms | forms


def mask(text: str) -> str:
    """`text` with every secret that was resolved in this process replaced."""
    for form in sorted(_known_forms, key=len, reverse=True):
        text = text.replace(form, MASK)
    return text


def _remember_login(jaas: str) -> None:
    try:
        options = parse_jaas(jaas).options
    except ConfigurationError:
        return  # the whole line is a secret already, and the client's making says what is wrong with it
    for name, value in options.items():
        if name.lower() in {"password", "clientsecret"}:
            remember(value)


def _substitute(key: str, text: str, environ: Mapping[str, str]) -> str:
    parts: list[str] = []
    rest = text
    for reference in find(text):
        before, _, rest = rest.partition(reference.text)
        parts += [before, _look_up(reference, key, environ)]
    return "".join(parts) + rest


def _look_up(reference: Reference, key: str, environ: Mapping[str, str]) -> str:
    if reference.provider == "env":
        value = environ.get(reference.path)
        if value is None:
            raise SecretError(f"{key}: the environment variable {reference.path} is not set")
        return value
    return _read_file(Path(reference.path), reference.key, key)


def _read_file(path: Path, wanted: str | None, key: str) -> str:
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SecretError(f"{key}: the file {path} cannot be read: {reason}") from None
    if is_secret(key) and mode & stat.S_IROTH:
        raise SecretError(f"{key}: the file {path} may be read by everyone; run: chmod o-rwx {path}")
    if wanted is None:
        return text.strip()
    for line in text.splitlines():
        name, separator, value = line.partition("=")
        if separator and name.strip() == wanted:
            return value.strip()
    raise SecretError(f"{key}: the file {path} has no property {wanted}")
