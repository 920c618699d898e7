from __future__ import annotations

import socket

import pytest
from confluent_kafka.admin import AdminClient
from kafka.net.manager import KafkaConnectionManager

from twinlog.cluster.client_config import for_kafka_python, for_librdkafka
from twinlog.cluster.security import read_security
from twinlog.errors import ConfigurationError
from twinlog.model.clients import PROPERTIES, ROLES, profile_settings

SCRAM = {
    "bootstrap.servers": "k:9092",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="mirror" password="hush hush";'
    ),
    "ssl.truststore.type": "PEM",
    "ssl.truststore.location": "/etc/ca.pem",
}


def test_a_mirrormaker_files_security_in_the_words_of_both_libraries() -> None:
    librdkafka = for_librdkafka(SCRAM).values
    kafka_python = for_kafka_python(SCRAM).values

    assert librdkafka == {
        "bootstrap.servers": "k:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "mirror",
        "sasl.password": "hush hush",
        "ssl.ca.location": "/etc/ca.pem",
        "ssl.endpoint.identification.algorithm": "https",
    }
    assert {key: kafka_python[key] for key in kafka_python if key.startswith(("sasl", "security", "boot"))} == {
        "bootstrap_servers": "k:9092",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "mirror",
        "sasl_plain_password": "hush hush",
    }
    assert "hush hush" not in f"{for_librdkafka(SCRAM)} {for_kafka_python(SCRAM)} {read_security(SCRAM)}"


def test_both_vocabularies_mean_the_same() -> None:
    native = {
        "bootstrap.servers": "k:9092",
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "mirror",
        "sasl.password": "hush hush",
        "ssl.ca.location": "/etc/ca.pem",
    }

    assert for_librdkafka(native).values == for_librdkafka(SCRAM).values
    assert for_kafka_python(native).values == for_kafka_python(SCRAM).values


def test_time_outs_and_buffers() -> None:
    settings = {
        "bootstrap.servers": "k:9092",
        "request.timeout.ms": "40000",
        "send.buffer.bytes": "262144",
        "receive.buffer.bytes": "-1",
        "socket.connection.setup.timeout.max.ms": "60000",
    }

    librdkafka, kafka_python = for_librdkafka(settings), for_kafka_python(settings)

    assert librdkafka.values["socket.timeout.ms"] == 40000
    assert librdkafka.values["socket.send.buffer.bytes"] == 262144
    assert "socket.receive.buffer.bytes" not in librdkafka.values
    assert set(librdkafka.not_applying) == {"socket.connection.setup.timeout.max.ms"}
    assert kafka_python.values["request_timeout_ms"] == 40000
    assert (socket.SOL_SOCKET, socket.SO_SNDBUF, 262144) in kafka_python.values["socket_options"]
    assert all(option != socket.SO_RCVBUF for _, option, _ in kafka_python.values["socket_options"])
    assert not kafka_python.not_applying


@pytest.mark.parametrize("translate", [for_librdkafka, for_kafka_python])
@pytest.mark.parametrize("name", sorted(PROPERTIES))
def test_every_property_of_a_topology_is_translated_or_explained(name: str, translate) -> None:  # type: ignore[no-untyped-def]
    values = {"ssl.truststore.type": "PEM", "ssl.keystore.type": "PEM", "security.protocol": "PLAINTEXT"}
    default = PROPERTIES[name].lan or "1"

    translate({"bootstrap.servers": "k:9092", name: values.get(name, default)})


@pytest.mark.parametrize("profile", ["lan", "wan"])
@pytest.mark.parametrize("role", ROLES)
def test_the_libraries_take_what_the_profiles_become(profile: str, role: str) -> None:
    settings = {"bootstrap.servers": "127.0.0.1:1", **profile_settings(profile, role)}

    AdminClient({**for_librdkafka(settings).values, "log_level": 0})
    assert set(for_kafka_python(settings).values) <= set(KafkaConnectionManager.DEFAULT_CONFIG)


@pytest.mark.parametrize("translate", [for_librdkafka, for_kafka_python])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fetch.max.byte": "1"}, r"fetch\.max\.byte is not .* did you mean fetch\.max\.bytes\?"),
        ({"zookeeper.connect.string": "z"}, r"zookeeper\.connect\.string is not a Kafka client property"),
        ({"request.timeout.ms": "soon"}, r"request\.timeout\.ms must be a whole number, not 'soon'"),
        ({"request.timeout.ms": "-2"}, r"request\.timeout\.ms must not be negative"),
        ({"security.protocol": "TLS"}, "security.protocol must be one of PLAINTEXT, SSL"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is missing"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "sasl.mechanism GSSAPI is not supported"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u"}, "PLAIN needs a password"),
        (
            {**SCRAM, "sasl.mechanism": "PLAIN"},
            "sasl.jaas.config is a login for SCRAM, but sasl.mechanism is PLAIN",
        ),
        (
            {"security.protocol": "SSL", "ssl.truststore.location": "/etc/my trust.jks"},
            r"is a JKS store, which only Java reads; convert it with "
            r"`keytool -list -rfc -keystore '/etc/my trust.jks' > '/etc/my trust.pem'`",
        ),
        (
            {"security.protocol": "SSL", "ssl.keystore.location": "/etc/key.p12"},
            "is a PKCS12 store.*openssl pkcs12 -in /etc/key.p12 -out /etc/key.pem",
        ),
        ({"security.protocol": "SSL", "enable.ssl.certificate.verification": "false"}, "cannot be switched off"),
        ({"security.protocol": "SSL", "ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "has Java's names"),
        ({"security.protocol": "SSL", "ssl.keystore.key": "k"}, "go together"),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"},
            r"needs sasl\.oauthbearer\.token\.endpoint\.url",
        ),
        (
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.token.endpoint.url": "https://id/token",
            },
            "needs sasl.oauthbearer.client.id",
        ),
        (
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.login.callback.handler.class": "com.example.Handler",
            },
            "com.example.Handler is a Java class",
        ),
    ],
)
def test_what_a_library_cannot_do_is_refused_by_name(settings, message, translate) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigurationError, match=message) as error:
        translate({"bootstrap.servers": "k:9092", **settings})
    assert "hush" not in str(error.value)


def test_client_credentials_become_librdkafkas_own() -> None:
    settings = {
        "bootstrap.servers": "k:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://id.example.com/token",
        "sasl.jaas.config": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
            'clientId="mirror" clientSecret="hush" scope="kafka" extension_logicalCluster="lkc-1";'
        ),
    }

    values = for_librdkafka(settings).values

    assert values["sasl.oauthbearer.method"] == "oidc"
    assert values["sasl.oauthbearer.client.id"] == "mirror"
    assert values["sasl.oauthbearer.client.secret"] == "hush"
    assert values["sasl.oauthbearer.scope"] == "kafka"
    assert values["sasl.oauthbearer.extensions"] == "logicalCluster=lkc-1"
    assert for_kafka_python(settings).values["sasl_mechanism"] == "OAUTHBEARER"
