"""What a `sasl.jaas.config` says, for the login modules that come with Apache Kafka.

People bring their MirrorMaker 2 files, and there the user name and password stand in a line written for Java:

    org.apache.kafka.common.security.scram.ScramLoginModule required username="mirror" password="...";

Errors name the login module or the option, never a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from twinlog.errors import ConfigurationError

_PACKAGE = "org.apache.kafka.common.security."
KNOWN_MODULES = {
    _PACKAGE + "plain.PlainLoginModule": "PLAIN",
    _PACKAGE + "scram.ScramLoginModule": "SCRAM",
    _PACKAGE + "oauthbearer.OAuthBearerLoginModule": "OAUTHBEARER",
}
_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<name>[A-Za-z_][\w.\-]*) \s* = \s*
            (?: "(?P<quoted>(?:[^"\\]|\\.)*)" | '(?P<single>[^']*)' | (?P<bare>[^\s;"']+) )
      | (?P<word>[A-Za-z_][\w.$]*)
      | (?P<end>;)
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class JaasLogin:
    """One login: the family of mechanisms that its module serves, and its options."""

    family: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"JaasLogin({self.family}, options {sorted(self.options)})"


def parse_jaas(text: str) -> JaasLogin:
    """Read the one login in `text`; a ConfigurationError for anything that it cannot be sure of."""
    words: list[str] = []
    options: dict[str, str] = {}
    position = 0
    ended = False
    while position < len(text.rstrip()):
        if ended:
            raise ConfigurationError("sasl.jaas.config holds more than one login; Twinlog uses exactly one")
        match = _TOKEN.match(text, position)
        if match is None:
            after = f"option {list(options)[-1]!r}" if options else "the login module"
            raise ConfigurationError(
                f'sasl.jaas.config cannot be read after {after}; expected `Module required name="value" ...;`'
            )
        position = match.end()
        if match["name"] is not None:
            options[match["name"]] = _value(match)
        elif match["word"] is not None:
            words.append(match["word"])
        else:
            ended = True
    return JaasLogin(_family(words, ended), options)


def _value(match: re.Match[str]) -> str:
    if match["quoted"] is not None:
        return re.sub(r"\\(.)", r"\1", match["quoted"])
    return match["single"] if match["single"] is not None else match["bare"]


def _family(words: list[str], ended: bool) -> str:
    if len(words) != 2 or words[1].lower() not in _FLAGS or not ended:
        raise ConfigurationError('sasl.jaas.config must read `Module required name="value" ...;`, with its semicolon')
    family = KNOWN_MODULES.get(words[0])
    if family is None:
        raise ConfigurationError(
            f"sasl.jaas.config names the login module {words[0]}, which needs Java; "
            f"Twinlog knows {', '.join(sorted(module.rsplit('.', 1)[1] for module in KNOWN_MODULES))}"
        )
    return family
