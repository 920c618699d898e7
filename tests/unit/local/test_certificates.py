from __future__ import annotations

import ssl
import stat
from pathlib import Path

from local import certificates


def test_keys_are_for_their_owner_only(tmp_path: Path) -> None:
    made = certificates.create(tmp_path)
    for keystore in (made.broker_keystore, made.client_keystore):
        assert stat.S_IMODE(keystore.stat().st_mode) == 0o600
    assert b"PRIVATE KEY" not in made.authority.read_bytes()


def test_a_client_trusts_the_broker_at_the_loopback_address_and_the_broker_the_client(tmp_path: Path) -> None:
    made = certificates.create(tmp_path)
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(made.broker_keystore)
    server_side.load_verify_locations(made.authority)
    server_side.verify_mode = ssl.CERT_REQUIRED
    client_side = ssl.create_default_context(cafile=str(made.authority))
    client_side.load_cert_chain(made.client_keystore)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_side.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    server = server_side.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    certificate = server.getpeercert()
    assert certificate is not None
    assert certificate["subject"] == ((("commonName", "client"),),)
