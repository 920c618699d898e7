"""References to values that are kept elsewhere, and which client properties are secrets.

A reference is written as Kafka's config providers write it: `${env:NAME}`, `${file:/path}` (the whole file,
stripped) or `${file:/path:key}` (one property of a .properties file). A secret stands in a file as one whole
reference or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_REFERENCE = re.compile(r"\$\{(?P<provider>env|file):(?P<path>[^:}]+)(?::(?P<key>[^}]+))?\}")
_ROLES = ("source.", "target.", "consumer.", "producer.", "admin.")
_SECRET = re.compile(
    r"(.*\.)?(password|secret|passphrase|jaas\.config|keystore\.key|key\.pem|token|assertion\.claim\.jwt)"
)


@dataclass(frozen=True)
class Reference:
    """Where a value is: an environment variable, a file, or a key of a properties file."""

    provider: str
    path: str
    key: str | None
    text: str


def find(text: str) -> Iterator[Reference]:
    """Every reference in a text, from left to right."""
    for match in _REFERENCE.finditer(text):
        yield _reference(match)


def whole(text: str) -> Reference | None:
    """The reference that the text consists of, or None where it is anything else."""
    match = _REFERENCE.fullmatch(text.strip())
    return _reference(match) if match else None


def without_role(key: str) -> str:
    """A client property without the `source.`, `consumer.`, ... that says which client it is for."""
    for prefix in _ROLES:
        key = key.removeprefix(prefix)
    return key


def is_secret(key: str) -> bool:
    """Whether a client property, with or without role prefixes, holds something that must not be shown."""
    return _SECRET.fullmatch(without_role(key)) is not None


def _reference(match: re.Match[str]) -> Reference:
    return Reference(match["provider"], match["path"], match["key"], match[0])
