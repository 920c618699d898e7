"""Tokens and client certificates on a real broker, through both clients."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from local.kafka import SASL_SSL, TLS, KafkaCluster, KafkaSpec, start
from support.admin import admin_of
from support.syncing import Hand
from support.waiting import await_condition
from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.raw import RawClient
from twinlog.cluster.secrets import resolve
from twinlog.errors import AuthenticationError

_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def unsigned_token(lifetime_s: int = 3600) -> str:
    """What Kafka's default validator takes: a JWT without a signature."""

    def part(value: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    now_s = int(time.time())
    claims: dict[str, object] = {"sub": "mirror", "iat": now_s, "exp": now_s + lifetime_s, "scope": []}
    return f"{part({'alg': 'none'})}.{part(claims)}."


class Provider(BaseHTTPRequestHandler):
    """An identity provider that trusts everybody."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"access_token": unsigned_token(), "token_type": "Bearer", "expires_in": 3600}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    properties = {
        "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "listener.name.sasl_ssl.sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": (
            f'{_MODULE} required unsecuredLoginStringClaim_sub="broker";'
        ),
    }
    spec = KafkaSpec(
        "oauth", tls=True, client_certificates=True, authorizer=True, plain={"bob": "unused"}, properties=properties
    )
    with start([spec], tmp_path_factory.mktemp("oauth")) as clusters:
        yield clusters["oauth"]


def bearer(cluster: KafkaCluster, **more: str) -> ClusterAccess:
    settings = cluster.client_settings(SASL_SSL, "bob")
    del settings["sasl.jaas.config"]
    settings |= {"sasl.mechanism": "OAUTHBEARER"} | {
        f"sasl.oauthbearer.{k.replace('_', '.')}": v for k, v in more.items()
    }
    return ClusterAccess("oauth", resolve(settings, environ={}))


def reach(access: ClusterAccess) -> None:
    with access.raw(15) as raw:
        assert len(raw.run(raw.metadata()).brokers) == 1
    admin = admin_of(access)
    with admin.errors():
        assert len(admin.list_topics(timeout=15).brokers) == 1


def test_a_token_from_a_file(cluster: KafkaCluster, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(unsigned_token())

    reach(bearer(cluster, token_endpoint_url=f"file://{file}"))


def test_tokens_from_an_identity_provider(cluster: KafkaCluster) -> None:
    with HTTPServer(("127.0.0.1", 0), Provider) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/token"
            reach(bearer(cluster, token_endpoint_url=url, client_id="mirror", client_secret="its word"))  # noqa: S106
        finally:
            server.shutdown()
            thread.join()


def test_a_token_that_has_ended_is_refused_at_once(cluster: KafkaCluster, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(unsigned_token(lifetime_s=-60))

    with pytest.raises(AuthenticationError, match="did not accept our credentials"):
        bearer(cluster, token_endpoint_url=f"file://{file}").raw(15)


def test_a_client_certificate(cluster: KafkaCluster) -> None:
    reach(ClusterAccess("oauth", resolve(cluster.client_settings(TLS), environ={})))


def test_who_needs_a_permission_is_named_as_the_broker_names_them(cluster: KafkaCluster, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(unsigned_token())
    known = {
        "User:CN=client": ClusterAccess("oauth", resolve(cluster.client_settings(TLS), environ={})),
        "User:mirror": bearer(cluster, token_endpoint_url=f"file://{file}"),
    }
    hand = Hand(cluster.bootstrap_servers)
    hand.create("theirs")

    for principal, access in known.items():
        with access.raw(15) as client:

            def may_see(client: RawClient = client) -> bool:
                return client.run(client.metadata(["theirs"])).topics["theirs"].error is None

            assert client.principal == principal
            assert not may_see()
            hand.allow(principal.removeprefix("User:"), "DESCRIBE", "theirs")
            await_condition(may_see, f"{principal} may see the topic")


def test_no_client_certificate_is_refused_at_once(cluster: KafkaCluster) -> None:
    settings = {name: value for name, value in cluster.client_settings(TLS).items() if "keystore" not in name}

    with pytest.raises(AuthenticationError, match="could not agree on TLS"):
        ClusterAccess("oauth", resolve(settings, environ={})).raw(15)
