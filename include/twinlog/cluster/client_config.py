"""Kafka client properties in the words of the two client libraries.

Pure: settings in, configuration out. No property is ever ignored silently. For each library a property is
either translated, or listed in `not_applying` with the reason, or refused by name with the nearest spelling.
"""

from __future__ import annotations

import difflib
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from twinlog.cluster.client_properties import (
    LIBRDKAFKA_ONLY,
    NOT_APPLYING,
    NOT_APPLYING_PREFIXES,
    SHARED,
    Shared,
)
from twinlog.cluster.secrets import MASK
from twinlog.cluster.security import PROPERTIES as SECURITY_PROPERTIES
from twinlog.cluster.security import Password, Security, Tls, Token, read_security
from twinlog.errors import ConfigurationError
from twinlog.model.references import is_secret

RECEIVE_MAX_BYTES = 512 * 1024 * 1024
"""The largest answer accepted: above any fetch.max.bytes in use, below the lengths a broken stream shows."""
UNLIMITED_IN_FLIGHT = 1_000_000
"""kafka-python refuses requests beyond its own limit instead of queueing them; whoever sends keeps count."""


@dataclass(frozen=True)
class ClientConfig:
    """A library's own configuration, and the properties that have no effect there, each with the reason."""

    values: Mapping[str, Any]
    not_applying: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        shown = {key: MASK if is_secret(key.replace("_", ".")) else value for key, value in self.values.items()}
        return f"ClientConfig({shown}, not_applying={sorted(self.not_applying)})"


def for_librdkafka(settings: Mapping[str, str]) -> ClientConfig:
    """The configuration of confluent-kafka's clients; a token from a file still needs its `oauth_cb`."""
    security = read_security(settings)
    values: dict[str, Any] = {"security.protocol": security.protocol}
    values.update(_librdkafka_tls(security.tls))
    values.update(_librdkafka_sasl(security))
    not_applying: dict[str, str] = {}
    for name, value in settings.items():
        rule = SHARED.get(name)
        if rule is not None:
            number = _checked(name, value, rule)
            if rule.librdkafka is None:
                not_applying[name] = "librdkafka has no such setting"
            elif not (rule.negative_is_default and number == -1):
                values[rule.librdkafka] = number
        elif name in LIBRDKAFKA_ONLY:
            values[name] = value
        else:
            _explain(name, not_applying)
    return ClientConfig(values, not_applying)


def for_kafka_python(settings: Mapping[str, str]) -> ClientConfig:
    """The configuration of kafka-python's connection manager; who opens it adds certificates and tokens."""
    security = read_security(settings)
    values: dict[str, Any] = {
        "security_protocol": security.protocol,
        "receive_message_max_bytes": RECEIVE_MAX_BYTES,
        "max_in_flight_requests_per_connection": UNLIMITED_IN_FLIGHT,
    }
    if security.sasl is not None:
        values["sasl_mechanism"] = security.sasl.mechanism
    if isinstance(security.sasl, Password):
        values["sasl_plain_username"] = security.sasl.username
        values["sasl_plain_password"] = security.sasl.password
    not_applying: dict[str, str] = {}
    for name, value in settings.items():
        rule = SHARED.get(name)
        if rule is not None:
            number = _checked(name, value, rule)
            if rule.kafka_python is not None:
                values[rule.kafka_python] = number
            elif rule.librdkafka is not None and name not in _SOCKET_OPTIONS:
                not_applying[name] = "kafka-python's connections have no such setting"
        elif name in LIBRDKAFKA_ONLY:
            not_applying[name] = "a setting of librdkafka alone"
        else:
            _explain(name, not_applying)
    values["socket_options"] = _socket_options(settings)
    return ClientConfig(values, not_applying)


_SOCKET_OPTIONS = {"send.buffer.bytes": socket.SO_SNDBUF, "receive.buffer.bytes": socket.SO_RCVBUF}


def _socket_options(settings: Mapping[str, str]) -> list[tuple[int, int, int]]:
    # Keep-alive finds out about a data centre that went away without a word.
    options = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, option in _SOCKET_OPTIONS.items():
        size = int(settings.get(name, "-1"))
        if size > 0:
            options.append((socket.SOL_SOCKET, option, size))
    return options


def _librdkafka_tls(tls: Tls | None) -> dict[str, Any]:
    if tls is None:
        return {}
    values = {
        "ssl.ca.location": tls.ca_file,
        "ssl.ca.pem": tls.ca_pem,
        "ssl.certificate.location": tls.certificate_file,
        "ssl.key.location": tls.key_file,
        "ssl.certificate.pem": tls.certificate_pem,
        "ssl.key.pem": tls.key_pem,
        "ssl.key.password": tls.key_password,
        "ssl.cipher.suites": tls.ciphers,
        "ssl.endpoint.identification.algorithm": "https" if tls.check_hostname else "none",
    }
    return {name: value for name, value in values.items() if value is not None}


def _librdkafka_sasl(security: Security) -> dict[str, Any]:
    sasl = security.sasl
    if sasl is None:
        return {}
    values: dict[str, Any] = {"sasl.mechanism": sasl.mechanism}
    if isinstance(sasl, Password):
        values |= {"sasl.username": sasl.username, "sasl.password": sasl.password}
    elif isinstance(sasl, Token) and not sasl.in_file:
        values |= {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": sasl.endpoint_url,
            "sasl.oauthbearer.client.id": sasl.client_id,
            "sasl.oauthbearer.client.secret": sasl.client_secret,
        }
        if sasl.scope:
            values["sasl.oauthbearer.scope"] = sasl.scope
        if sasl.extensions:
            values["sasl.oauthbearer.extensions"] = ",".join(f"{name}={value}" for name, value in sasl.extensions)
    return values


def _checked(name: str, value: str, rule: Shared) -> str | int:
    if not rule.number:
        return value
    try:
        number = int(value)
    except ValueError:
        raise ConfigurationError(f"{name} must be a whole number, not {value!r}") from None
    if number < (-1 if rule.negative_is_default else 0):
        raise ConfigurationError(f"{name} must not be negative, but is {number}")
    return number


def _explain(name: str, not_applying: dict[str, str]) -> None:
    """Note why a property without a translation has no effect, or refuse it."""
    if name in SECURITY_PROPERTIES:
        return
    reason = NOT_APPLYING.get(name) or next(
        (why for prefix, why in NOT_APPLYING_PREFIXES.items() if name.startswith(prefix)), None
    )
    if reason is None:
        known = [*SHARED, *LIBRDKAFKA_ONLY, *SECURITY_PROPERTIES, *NOT_APPLYING]
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}?" if close else "remove it"
        raise ConfigurationError(f"{name} is not a Kafka client property that Twinlog can honour; {hint}")
    not_applying[name] = reason
