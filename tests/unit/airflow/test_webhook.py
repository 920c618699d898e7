from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from airflow.sdk import BaseHook, Connection

from twinlog.airflow.notices import Notice, NoticeKind
from twinlog.airflow.webhook import WebhookNotifier, address
from twinlog.errors import ConfigurationError, NoticeError

NOTICE = Notice(NoticeKind.DIFFERENT, "nyc->lon", "2 offsets differ", text="orders-0 at 7", link="http://airflow/task")


@pytest.fixture
def hook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server's address, and what was posted to it; to /no it answers that it may not be."""
    posted: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            posted.append({"authorization": self.headers["Authorization"], **body})
            self.send_response(403 if self.path.startswith("/no") else 204)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}", posted
        server.shutdown()
        serving.join()


def connect(monkeypatch: pytest.MonkeyPatch, host: str, password: str | None = None) -> None:
    connection = Connection(conn_id="oncall", conn_type="http", host=host, password=password)
    monkeypatch.setattr(BaseHook, "get_connection", lambda _: connection)


def test_a_notice_is_posted_for_people_and_for_programs(
    hook: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, posted = hook
    connect(monkeypatch, f"{url}/yes", "geheim")
    WebhookNotifier("oncall")({"notice": NOTICE})
    assert posted == [
        {
            "authorization": "Bearer geheim",
            "text": "2 offsets differ\norders-0 at 7\nhttp://airflow/task",
            "notice": json.loads(json.dumps(NOTICE.to_json())),
        }
    ]


def test_a_refusal_is_named_without_the_address_which_may_hold_a_token(
    hook: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, _ = hook
    connect(monkeypatch, f"{url}/no/geheim")
    with pytest.raises(NoticeError, match="the webhook 'oncall' answered with 403") as refused:
        WebhookNotifier("oncall").notify({"notice": NOTICE})  # type: ignore[typeddict-unknown-key]
    assert "geheim" not in str(refused.value)


def made(**parts: Any) -> Connection:
    return Connection(conn_id="c", conn_type="http", **parts)


def test_an_address_is_in_the_host_or_made_of_its_parts() -> None:
    assert address("c", made(host="https://hooks.example.com/a")) == "https://hooks.example.com/a"
    assert address("c", made(host="hooks", schema="http", port=81)) == "http://hooks:81"
    assert address("c", made(host="hooks")) == "https://hooks"
    for host in ("file:///etc/passwd", "", None):
        with pytest.raises(ConfigurationError, match="holds no http address"):
            address("c", made(host=host))
