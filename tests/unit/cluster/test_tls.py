from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from local import certificates
from twinlog.cluster.security import Tls
from twinlog.cluster.tls import check_files, tls_context
from twinlog.errors import ConfigurationError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> certificates.Certificates:
    return certificates.create(tmp_path_factory.mktemp("tls"))


def test_kafkas_pem_stores_are_loaded(made: certificates.Certificates) -> None:
    store = str(made.client_keystore)

    context = tls_context(Tls(ca_file=str(made.authority), certificate_file=store, key_file=store))

    assert context.check_hostname
    assert len(context.get_ca_certs()) == 1


def test_certificates_may_be_given_as_text(made: certificates.Certificates) -> None:
    store = made.client_keystore.read_text()

    context = tls_context(Tls(ca_pem=made.authority.read_text(), certificate_pem=store, key_pem=store))

    assert len(context.get_ca_certs()) == 1


def test_an_encrypted_key_wants_its_password_and_never_a_terminal(
    made: certificates.Certificates, tmp_path: Path
) -> None:
    key = serialization.load_pem_private_key(made.client_keystore.read_bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"open sesame"),
    )
    text = made.client_keystore.read_text()
    chain = text[text.index("-----BEGIN CERTIFICATE") :]
    store = tmp_path / "locked.pem"
    store.write_text(locked.decode() + chain)

    tls_context(Tls(certificate_file=str(store), key_file=str(store), key_password="open sesame"))  # noqa: S106
    for password in (None, "wrong"):
        with pytest.raises(ConfigurationError, match=r"locked\.pem: the certificate and its private key could not"):
            tls_context(Tls(certificate_file=str(store), key_file=str(store), key_password=password))


def test_what_is_wrong_with_a_file_is_said_with_its_name(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")

    with pytest.raises(ConfigurationError, match=r"empty\.pem holds no certificate in PEM form"):
        tls_context(Tls(ca_file=str(empty)))
    with pytest.raises(ConfigurationError, match=r"/no/ca\.pem cannot be read: No such file"):
        check_files(Tls(ca_file="/no/ca.pem"))
    with pytest.raises(ConfigurationError, match="OpenSSL knows none of NONSENSE"):
        tls_context(Tls(ciphers="NONSENSE"))
