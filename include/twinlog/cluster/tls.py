"""Certificates as Python's TLS wants them, loaded once a client instead of once a connection.

Whatever is wrong with a file is an error that names it; nobody is ever asked for a password on a terminal.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

from twinlog.cluster.security import Tls
from twinlog.errors import ConfigurationError


def tls_context(tls: Tls) -> ssl.SSLContext:
    """TLS 1.2 or later; the broker's certificate is always verified."""
    check_files(tls)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.check_hostname
    _trust(context, tls)
    if tls.ciphers:
        try:
            context.set_ciphers(tls.ciphers)
        except ssl.SSLError:
            raise ConfigurationError(f"ssl.cipher.suites: OpenSSL knows none of {tls.ciphers}") from None
    if tls.certificate_file is not None:
        _show(context, tls.certificate_file, tls.key_file, tls.key_password)
    elif tls.certificate_pem is not None and tls.key_pem is not None:
        # Python loads a client's certificate from a file only; this one is readable by its owner alone.
        with tempfile.NamedTemporaryFile("w", suffix=".pem", encoding="ascii") as file:
            file.write(f"{tls.key_pem}\n{tls.certificate_pem}\n")
            file.flush()
            _show(context, file.name, None, tls.key_password, said="ssl.keystore.certificate.chain")
    return context


def check_files(tls: Tls) -> None:
    """librdkafka prints a missing file on standard error, with OpenSSL's numbers; we say it in words."""
    for path in (tls.ca_file, tls.certificate_file, tls.key_file):
        if path is None:
            continue
        try:
            with Path(path).open("rb"):
                pass
        except OSError as error:
            raise ConfigurationError(f"the certificate file {path} cannot be read: {error.strerror}") from None


def _trust(context: ssl.SSLContext, tls: Tls) -> None:
    if tls.ca_file is None and tls.ca_pem is None:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(cafile=tls.ca_file, cadata=tls.ca_pem)
    except (ssl.SSLError, ValueError):
        where = tls.ca_file or "ssl.truststore.certificates"
        raise ConfigurationError(f"{where} holds no certificate in PEM form") from None


def _show(
    context: ssl.SSLContext, certificate: str, key: str | None, password: str | None, said: str | None = None
) -> None:
    try:
        context.load_cert_chain(certificate, key, password=lambda: password or "")
    except (ssl.SSLError, ValueError):
        raise ConfigurationError(
            f"{said or certificate}: the certificate and its private key could not be loaded; expected PEM, "
            "a key that belongs to the certificate, and the right ssl.key.password if it has one"
        ) from None
