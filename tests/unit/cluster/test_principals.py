from __future__ import annotations

import base64
import datetime
import json
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from twinlog.cluster.certificate_subject import subject_of
from twinlog.cluster.principals import ANONYMOUS, UNKNOWN, principal_of

KEY = ec.generate_private_key(ec.SECP256R1())
TODAY = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
KINDS = (
    NameOID.COMMON_NAME,
    NameOID.LOCALITY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.DOMAIN_COMPONENT,
    NameOID.USER_ID,
)
TOKEN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "https://idp.example.com/token",
    "sasl.oauthbearer.client.id": "mirror",
    "sasl.oauthbearer.client.secret": "word",
}


def certificate(subject: x509.Name) -> str:
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "the authority")]))
        .public_key(KEY.public_key())
        .serial_number(7)
        .not_valid_before(TODAY)
        .not_valid_after(TODAY + datetime.timedelta(days=1))
        .sign(KEY, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM).decode()


def name(*attributes: tuple[x509.ObjectIdentifier, str]) -> x509.Name:
    return x509.Name([x509.NameAttribute(kind, value) for kind, value in attributes])


TEXTS = st.text(st.characters(codec="utf-8", min_codepoint=32), min_size=1, max_size=9)
PARTS = st.lists(
    st.lists(
        st.tuples(st.sampled_from(KINDS), TEXTS), min_size=1, max_size=2, unique_by=lambda one: one[0].dotted_string
    ),
    min_size=1,
    max_size=4,
)


@given(PARTS)
@settings(deadline=None)
def test_a_subject_is_written_as_the_standard_says(parts: list[list[tuple[x509.ObjectIdentifier, str]]]) -> None:
    subject = x509.Name(
        [
            x509.RelativeDistinguishedName(x509.NameAttribute(kind, value) for kind, value in attributes)
            for attributes in parts
        ]
    )

    pem = certificate(subject)

    assert subject_of(pem) == x509.load_pem_x509_certificate(pem.encode()).subject.rfc4514_string()


def test_an_attribute_without_a_keyword_is_written_as_its_bytes() -> None:
    mail = name((NameOID.EMAIL_ADDRESS, "a@b"), (NameOID.COMMON_NAME, "mirror"))

    assert subject_of(certificate(mail)) == "CN=mirror,1.2.840.113549.1.9.1=#1603614062"


@given(st.binary(max_size=60))
def test_what_is_no_certificate_has_no_subject(damaged: bytes) -> None:
    inside = base64.b64encode(damaged).decode()

    assert subject_of(f"-----BEGIN CERTIFICATE-----\n{inside}\n-----END CERTIFICATE-----") is None
    assert subject_of("no PEM") is None


def test_a_user_name_says_who_we_are_and_nothing_shown_is_nobody() -> None:
    scram = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}

    assert principal_of({**scram, "sasl.username": "mirror", "sasl.password": "word"}) == "User:mirror"
    assert principal_of({}) == ANONYMOUS
    assert principal_of({"security.protocol": "SSL"}) == ANONYMOUS


def test_a_certificate_says_who_we_are(tmp_path: Path) -> None:
    shown = certificate(name((NameOID.ORGANIZATION_NAME, "Acme, Inc."), (NameOID.COMMON_NAME, "mirror")))
    file = tmp_path / "client.pem"
    file.write_text(f"-----BEGIN PRIVATE KEY-----\nnone\n-----END PRIVATE KEY-----\n{shown}")
    tls = {"security.protocol": "SSL"}

    assert principal_of({**tls, "ssl.keystore.location": str(file)}) == "User:CN=mirror,O=Acme\\, Inc."
    given = {"ssl.keystore.certificate.chain": shown, "ssl.keystore.key": "a key"}
    assert principal_of({**tls, **given}) == "User:CN=mirror,O=Acme\\, Inc."
    assert principal_of({**tls, "ssl.keystore.location": str(tmp_path / "absent.pem")}) == UNKNOWN


@pytest.mark.parametrize(
    ("content", "principal"),
    [("{claims}", "User:mirror"), ("opaque", UNKNOWN), ("a.b.c", UNKNOWN), (None, UNKNOWN)],
)
def test_a_token_in_a_file_says_who_we_are(tmp_path: Path, content: str | None, principal: str) -> None:
    file = tmp_path / "token"
    if content is not None:
        claims = base64.urlsafe_b64encode(json.dumps({"sub": "mirror"}).encode()).decode().rstrip("=")
        file.write_text(content.replace("{claims}", f"e30.{claims}.x"))

    alone = {key: value for key, value in TOKEN.items() if "client" not in key}
    assert principal_of({**alone, "sasl.oauthbearer.token.endpoint.url": f"file://{file}"}) == principal


def test_a_client_of_an_identity_provider_is_named_where_its_principal_is_not_known() -> None:
    assert principal_of(TOKEN) == "the principal of client mirror"
