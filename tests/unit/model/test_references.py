"""References, and which properties are secrets."""

from __future__ import annotations

import pytest

from twinlog.model.references import Reference, find, is_secret, whole


def test_references_in_a_text() -> None:
    text = "a ${env:HOST}:${file:/p/f.properties:port} ${topic} ${vault:x}"
    assert list(find(text)) == [
        Reference("env", "HOST", None, "${env:HOST}"),
        Reference("file", "/p/f.properties", "port", "${file:/p/f.properties:port}"),
    ]


def test_a_whole_reference() -> None:
    assert whole(" ${file:/run/secret} ") == Reference("file", "/run/secret", None, "${file:/run/secret}")
    assert whole("x${env:A}") is None
    assert whole("${env:A}${env:B}") is None
    assert whole("${env:}") is None


@pytest.mark.parametrize(
    "key",
    [
        "sasl.password",
        "source.consumer.sasl.password",
        "producer.ssl.key.password",
        "ssl.keystore.password",
        "ssl.truststore.password",
        "ssl.keystore.key",
        "ssl.key.pem",
        "sasl.jaas.config",
        "admin.sasl.jaas.config",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.client.credentials.client.secret",
    ],
)
def test_secrets(key: str) -> None:
    assert is_secret(key)


@pytest.mark.parametrize(
    "key",
    ["sasl.username", "ssl.key.location", "ssl.keystore.location", "sasl.oauthbearer.token.endpoint.url", "client.id"],
)
def test_what_is_no_secret(key: str) -> None:
    assert not is_secret(key)
