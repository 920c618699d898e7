from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from twinlog.cluster.secrets import mask
from twinlog.cluster.security import Token
from twinlog.cluster.tokens import TokenSource
from twinlog.errors import AuthenticationError, SecretError


class Provider(BaseHTTPRequestHandler):
    """An identity provider with one client."""

    asked: ClassVar[list[str]] = []
    lifetime_s: ClassVar[int] = 3600

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        Provider.asked.append(body)
        right = base64.b64encode(b"mirror:right secret").decode()
        if self.headers["Authorization"] != f"Basic {right}":
            self.send_error(401)
            return
        answer = (
            b"not json"
            if "broken" in body
            else json.dumps(
                {"access_token": f"token-{len(Provider.asked)}", "expires_in": Provider.lifetime_s}
            ).encode()
        )
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def provider() -> Iterator[str]:
    Provider.asked.clear()
    Provider.lifetime_s = 3600
    with HTTPServer(("127.0.0.1", 0), Provider) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/token"
        server.shutdown()
        thread.join()


def test_a_token_is_asked_for_once_while_it_lasts(provider: str) -> None:
    source = TokenSource(Token(provider, "mirror", "right secret", scope="kafka"))

    assert {source.current().value for _ in range(3)} == {"token-1"}
    assert Provider.asked == ["grant_type=client_credentials&scope=kafka"]


def test_a_token_about_to_end_is_renewed(provider: str) -> None:
    Provider.lifetime_s = 10
    source = TokenSource(Token(provider, "mirror", "right secret"))

    assert [source.current().value, source.current().value] == ["token-1", "token-2"]


@pytest.mark.parametrize(
    ("secret", "scope", "message"),
    [
        ("wrong secret", None, "refused the client credentials \\(HTTP 401\\)"),
        ("right secret", "broken", "JSON object"),
    ],
)
def test_what_the_provider_says_is_told_without_the_secret(
    provider: str, secret: str, scope: str | None, message: str
) -> None:
    with pytest.raises(AuthenticationError, match=message) as error:
        TokenSource(Token(provider, "mirror", secret, scope)).current()
    assert secret not in str(error.value)


def test_a_token_file_is_read_anew_and_its_end_is_known(tmp_path: Path) -> None:
    def jwt(expires_at_s: int) -> str:
        claims = base64.urlsafe_b64encode(json.dumps({"exp": expires_at_s}).encode()).decode().rstrip("=")
        return f"head.{claims}.signature"

    file = tmp_path / "token"
    source = TokenSource(Token(f"file://{file}"))
    file.write_text(jwt(2_000_000_000) + "\n")
    first = source.current()
    file.write_text("opaque-token")
    second = source.current()

    assert (first.value, first.expires_at_s) == (jwt(2_000_000_000), 2_000_000_000)
    assert second.value == "opaque-token"
    assert second.expires_at_s > time.time()
    assert "opaque-token" not in mask("sent opaque-token") + repr(second)


def test_a_missing_token_file_is_named() -> None:
    with pytest.raises(SecretError, match="/no/such/token cannot be read"):
        TokenSource(Token("file:///no/such/token")).current()
