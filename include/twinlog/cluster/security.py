"""How to prove who we are and whom we talk to, read from Kafka client properties.

Pure: properties in, one `Security` out, no file opened and no client in sight. Both vocabularies are
understood, Apache Kafka's (`sasl.jaas.config`, `ssl.truststore.location`) and librdkafka's (`sasl.username`,
`ssl.ca.location`), since Airflow's Kafka connections hold the latter. Certificates are PEM, the one form that
both client libraries read; other stores are refused with the command that converts them.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from twinlog.cluster.jaas import JaasLogin, parse_jaas
from twinlog.errors import ConfigurationError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = (*PASSWORD_MECHANISMS, "OAUTHBEARER")

PROPERTIES = frozenset(
    {
        "security.protocol",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.jaas.config",
        "sasl.username",
        "sasl.password",
        "sasl.login.callback.handler.class",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.extensions",
        "ssl.truststore.location",
        "ssl.truststore.type",
        "ssl.truststore.password",
        "ssl.truststore.certificates",
        "ssl.keystore.location",
        "ssl.keystore.type",
        "ssl.keystore.password",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "ssl.key.password",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.cipher.suites",
        "ssl.endpoint.identification.algorithm",
        "enable.ssl.certificate.verification",
    }
)
"""Every property that this module understands; no other module reads them."""

_PEM_SUFFIXES = frozenset({".pem", ".crt", ".cer", ".key"})
_PKCS12_SUFFIXES = frozenset({".p12", ".pfx", ".pkcs12"})
_STANDARD_HANDLER = "OAuthBearerLoginCallbackHandler"


@dataclass(frozen=True, slots=True)
class Tls:
    """Whom to trust (None: the system's authorities) and the certificate to show, if any."""

    ca_file: str | None = None
    ca_pem: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    certificate_pem: str | None = None
    key_pem: str | None = None
    key_password: str | None = None
    ciphers: str | None = None
    check_hostname: bool = True

    def __repr__(self) -> str:
        return f"Tls(ca_file={self.ca_file!r}, certificate_file={self.certificate_file!r})"


@dataclass(frozen=True, slots=True)
class Password:
    """SASL with a user name and a password."""

    mechanism: str
    username: str
    password: str

    def __repr__(self) -> str:
        return f"Password({self.mechanism}, {self.username!r})"


@dataclass(frozen=True, slots=True)
class Token:
    """SASL/OAUTHBEARER: a token from a file (`file:` URL) or, by client credentials, an identity provider."""

    endpoint_url: str
    client_id: str | None = None
    client_secret: str | None = None
    scope: str | None = None
    extensions: tuple[tuple[str, str], ...] = ()

    @property
    def mechanism(self) -> str:
        return "OAUTHBEARER"

    @property
    def in_file(self) -> bool:
        return self.endpoint_url.startswith("file:")

    def __repr__(self) -> str:
        return f"Token({self.endpoint_url!r}, client_id={self.client_id!r})"


@dataclass(frozen=True, slots=True)
class Security:
    """The protocol of a cluster's listener, and what it asks for."""

    protocol: str
    tls: Tls | None
    sasl: Password | Token | None


def read_security(settings: Mapping[str, str]) -> Security:
    """Raises ConfigurationError for what is missing, contradictory or only Java can do."""
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise ConfigurationError(f"security.protocol must be one of {', '.join(PROTOCOLS)}, not {protocol}")
    return Security(
        protocol=protocol,
        tls=_read_tls(settings) if protocol.endswith("SSL") else None,
        sasl=_read_sasl(settings) if protocol.startswith("SASL") else None,
    )


def _read_tls(settings: Mapping[str, str]) -> Tls:
    if settings.get("enable.ssl.certificate.verification", "true").lower() != "true":
        raise ConfigurationError(
            "enable.ssl.certificate.verification cannot be switched off: give the authority's certificate "
            "in ssl.truststore.location instead"
        )
    algorithm = settings.get("ssl.endpoint.identification.algorithm", "https").lower()
    if algorithm not in {"https", "", "none"}:
        raise ConfigurationError(f"ssl.endpoint.identification.algorithm must be https or empty, not {algorithm}")
    _require_pem(settings, "truststore", "keytool -list -rfc -keystore {store} > {pem}")
    _require_pem(
        settings,
        "keystore",
        "keytool -importkeystore -srckeystore {store} -destkeystore {p12} -deststoretype PKCS12 && "
        "openssl pkcs12 -in {p12} -out {pem}",
    )
    if ("ssl.keystore.key" in settings) != ("ssl.keystore.certificate.chain" in settings):
        raise ConfigurationError("ssl.keystore.key and ssl.keystore.certificate.chain go together; one is missing")
    keystore = settings.get("ssl.keystore.location")
    certificate = settings.get("ssl.certificate.location", keystore)
    # Kafka's PEM key store is one file with the key and its chain.
    key = settings.get("ssl.key.location", certificate)
    return Tls(
        ca_file=settings.get("ssl.ca.location", settings.get("ssl.truststore.location")),
        ca_pem=settings.get("ssl.truststore.certificates"),
        certificate_file=certificate,
        key_file=key,
        certificate_pem=settings.get("ssl.keystore.certificate.chain"),
        key_pem=settings.get("ssl.keystore.key"),
        ciphers=_openssl_ciphers(settings.get("ssl.cipher.suites")),
        key_password=settings.get("ssl.key.password"),
        check_hostname=algorithm == "https",
    )


def _openssl_ciphers(names: str | None) -> str | None:
    if names is not None and "TLS_" in names:
        raise ConfigurationError(
            "ssl.cipher.suites has Java's names; expected OpenSSL's, such as ECDHE-RSA-AES256-GCM-SHA384"
        )
    return names.replace(",", ":") if names else None


def _require_pem(settings: Mapping[str, str], store: str, command: str) -> None:
    location = settings.get(f"ssl.{store}.location")
    if location is None:
        return
    kind = settings.get(f"ssl.{store}.type", _kind_by_suffix(location)).upper()
    if kind == "PEM":
        return
    path = PurePath(location)
    convert = command.format(
        store=shlex.quote(location),
        p12=shlex.quote(str(path.with_suffix(".p12"))),
        pem=shlex.quote(str(path.with_suffix(".pem"))),
    )
    raise ConfigurationError(
        f"ssl.{store}.location {location} is a {kind} store, which only Java reads; convert it with "
        f"`{convert}` and set ssl.{store}.type to PEM"
    )


def _kind_by_suffix(location: str) -> str:
    suffix = PurePath(location).suffix.lower()
    if suffix in _PEM_SUFFIXES:
        return "PEM"
    return "PKCS12" if suffix in _PKCS12_SUFFIXES else "JKS"  # Java's own default


def _read_sasl(settings: Mapping[str, str]) -> Password | Token:
    mechanism = settings.get("sasl.mechanism", settings.get("sasl.mechanisms", "")).upper()
    if not mechanism:
        raise ConfigurationError(f"sasl.mechanism is missing; expected one of {', '.join(MECHANISMS)}")
    if mechanism not in MECHANISMS:
        raise ConfigurationError(
            f"sasl.mechanism {mechanism} is not supported: confluent-kafka and kafka-python share "
            f"{', '.join(MECHANISMS)}"
        )
    login = _read_login(settings, mechanism)
    if mechanism == "OAUTHBEARER":
        return _read_token(settings, login)
    username = settings.get("sasl.username", login.get("username"))
    password = settings.get("sasl.password", login.get("password"))
    if username is None or password is None:
        missing = "user name" if username is None else "password"
        raise ConfigurationError(
            f"sasl.mechanism {mechanism} needs a {missing}: give sasl.username and sasl.password, or sasl.jaas.config"
        )
    return Password(mechanism, username, password)


def _read_login(settings: Mapping[str, str], mechanism: str) -> Mapping[str, str]:
    text = settings.get("sasl.jaas.config")
    if text is None:
        return {}
    login: JaasLogin = parse_jaas(text)
    if not mechanism.startswith(login.family):
        raise ConfigurationError(f"sasl.jaas.config is a login for {login.family}, but sasl.mechanism is {mechanism}")
    return login.options


def _read_token(settings: Mapping[str, str], login: Mapping[str, str]) -> Token:
    handler = settings.get("sasl.login.callback.handler.class", _STANDARD_HANDLER)
    if not handler.endswith("." + _STANDARD_HANDLER) and handler != _STANDARD_HANDLER:
        raise ConfigurationError(
            f"sasl.login.callback.handler.class {handler} is a Java class; Twinlog gets tokens as "
            f"Kafka's own {_STANDARD_HANDLER} does"
        )
    if settings.get("sasl.oauthbearer.method", "oidc").lower() != "oidc":
        raise ConfigurationError("sasl.oauthbearer.method must be oidc")
    endpoint = settings.get("sasl.oauthbearer.token.endpoint.url")
    if endpoint is None or not endpoint.startswith(("https://", "http://", "file:")):
        raise ConfigurationError(
            "sasl.mechanism OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url: https:// of the identity "
            "provider, or file:// of a file with the token"
        )
    prefix = "sasl.oauthbearer."
    client_id = _first(settings, prefix + "client.credentials.client.id", prefix + "client.id") or login.get("clientId")
    secret = _first(settings, prefix + "client.credentials.client.secret", prefix + "client.secret") or login.get(
        "clientSecret"
    )
    if not endpoint.startswith("file:") and (client_id is None or secret is None):
        raise ConfigurationError(
            "sasl.mechanism OAUTHBEARER needs sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret, "
            "or clientId and clientSecret in sasl.jaas.config"
        )
    return Token(
        endpoint_url=endpoint,
        client_id=client_id,
        client_secret=secret,
        scope=settings.get(prefix + "scope", login.get("scope")),
        extensions=_extensions(settings.get(prefix + "extensions", ""), login),
    )


def _first(settings: Mapping[str, str], *names: str) -> str | None:
    return next((settings[name] for name in names if name in settings), None)


def _extensions(listed: str, login: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """librdkafka writes `key=value,key=value`, a login module `extension_key=value`."""
    pairs = {name.removeprefix("extension_"): value for name, value in login.items() if name.startswith("extension_")}
    for item in filter(None, (part.strip() for part in listed.split(","))):
        name, _, value = item.partition("=")
        pairs[name.strip()] = value.strip()
    return tuple(sorted(pairs.items()))
