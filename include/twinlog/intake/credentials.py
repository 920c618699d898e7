"""Client properties of another mirror, rewritten so that no plain secret is among them.

A secret that stood in the open becomes a reference to an environment variable, named after the cluster and
the property (`${env:NYC_SASL_PASSWORD}`). References to Kafka's config providers stay references: those to
files and to the environment as they are, those to a directory as the file in it. What any other provider
keeps (a vault, a cloud's secret store) is asked for through an environment variable too.

A login of PLAIN or SCRAM in `sasl.jaas.config` becomes `sasl.username` and `sasl.password`, so that only the
password needs to be hidden; any other login is hidden whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from twinlog.model.references import is_secret, whole, without_role

_PROVIDED = re.compile(r"\$\{(?P<provider>[^:}]*)(?P<rest>:[^}]*)?\}")
_PROVIDER_KINDS = {
    "FileConfigProvider": "file",
    "EnvVarConfigProvider": "env",
    "DirectoryConfigProvider": "directory",
}
_USER_INFO = re.compile(r"://[^/@\s]+@")
_JAAS = "sasl.jaas.config"
_PASSWORD_LOGIN = re.compile(
    r"""\s*org\.apache\.kafka\.common\.security\.(plain\.Plain|scram\.Scram)LoginModule\s+required
        (?P<options>(\s+(username|password)\s*=\s*"[^"\\]*")+)\s*;\s*""",
    re.VERBOSE,
)
_OPTION = re.compile(r'(username|password)\s*=\s*"([^"]*)"')


class UnknownProviderError(ValueError):
    """A value that is no secret is kept by a config provider that Twinlog has no counterpart of."""


class Credentials:
    """Rewrites values, and remembers which environment variables it asked for and what each stands for."""

    def __init__(self, provider_classes: Mapping[str, str] | None = None) -> None:
        """`provider_classes`: the input's `config.providers.<name>.class`, by name."""
        kinds: dict[str, str | None] = {kind: kind for kind in _PROVIDER_KINDS.values()}
        for name, class_name in (provider_classes or {}).items():
            kinds[name] = _PROVIDER_KINDS.get(class_name.strip().rsplit(".", 1)[-1])
        self._kinds = kinds
        self._variables: dict[str, tuple[str, str]] = {}

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(self._variables)

    def rewritten(self, owner: str, key: str, value: str) -> dict[str, str]:
        """The properties that say the same; `owner` is the alias or the flow that the key belongs to."""
        bare = without_role(key)
        if bare == _JAAS and (login := _PASSWORD_LOGIN.fullmatch(value)) is not None:
            options = dict(_OPTION.findall(login["options"]))
            if options.keys() == {"username", "password"}:
                prefix = key.removesuffix(_JAAS)
                return {
                    f"{prefix}sasl.{name}": self._one(owner, f"{prefix}sasl.{name}", options[name])
                    for name in ("username", "password")
                }
        return {key: self._one(owner, key, value)}

    def _one(self, owner: str, key: str, value: str) -> str:
        text = _PROVIDED.sub(self._reference, value)
        if is_secret(key) or _USER_INFO.search(text):
            reference = whole(text)
            return reference.text if reference is not None else self._variable(owner, key)
        for found in _PROVIDED.finditer(text):
            if found["provider"] not in ("env", "file"):
                raise UnknownProviderError(
                    f"its value is kept by the config provider {found['provider'].removeprefix('?')!r}, "
                    f"which Twinlog does not have; use ${{env:NAME}} or ${{file:/path:key}}"
                )
        return text

    def _reference(self, match: re.Match[str]) -> str:
        kind, rest = self._kinds.get(match["provider"]), match["rest"] or ""
        if kind == "directory":
            folder, _, name = rest.removeprefix(":").rpartition(":")
            return f"${{file:{folder}/{name}}}"
        # A provider of another kind must not be mistaken for one of ours, even if it is called `file`.
        return f"${{{kind or '?' + match['provider']}{rest}}}"

    def _variable(self, owner: str, key: str) -> str:
        stem = re.sub(r"[^A-Z0-9]+", "_", f"{owner} {key}".upper()).strip("_")
        if stem[:1].isdigit():
            stem = f"KAFKA_{stem}"
        name, number = stem, 1
        while self._variables.setdefault(name, (owner, key)) != (owner, key):
            number += 1
            name = f"{stem}_{number}"
        return f"${{env:{name}}}"
