from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from airflow.sdk import BaseHook, Connection

from support.webhook import Webhook, webhook
from twinlog.airflow.notices import Notice, NoticeKind
from twinlog.airflow.webhook import WebhookNotifier, address
from twinlog.errors import ConfigurationError, NoticeError

NOTICE = Notice(NoticeKind.DIFFERENT, "nyc->lon", "2 offsets differ", text="orders-0 at 7", link="http://airflow/task")


@pytest.fixture
def hook() -> Iterator[Webhook]:
    with webhook() as made:
        yield made


def connect(monkeypatch: pytest.MonkeyPatch, host: str, password: str | None = None) -> None:
    connection = Connection(conn_id="oncall", conn_type="http", host=host, password=password)
    monkeypatch.setattr(BaseHook, "get_connection", lambda _: connection)


def test_a_notice_is_posted_for_people_and_for_programs(hook: Webhook, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, f"{hook.url}/yes", "geheim")
    WebhookNotifier("oncall")({"notice": NOTICE})
    assert hook.posted == [
        {
            "authorization": "Bearer geheim",
            "text": "2 offsets differ\norders-0 at 7\nhttp://airflow/task",
            "notice": json.loads(json.dumps(NOTICE.to_json())),
        }
    ]


def test_a_refusal_is_named_without_the_address_which_may_hold_a_token(
    hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, f"{hook.url}/no/geheim")
    with pytest.raises(NoticeError, match="the webhook 'oncall' answered with 403") as refused:
        WebhookNotifier("oncall").notify({"notice": NOTICE})  # type: ignore[typeddict-unknown-key]
    assert "geheim" not in str(refused.value)


def test_nobody_is_followed_elsewhere_with_the_token(hook: Webhook, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, f"{hook.url}/moved", "geheim")
    with pytest.raises(NoticeError, match="the webhook 'oncall' answered with 302"):
        WebhookNotifier("oncall").notify({"notice": NOTICE})  # type: ignore[typeddict-unknown-key]
    assert len(hook.posted) == 1


def test_an_address_that_is_none_is_not_shown(hook: Webhook, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, f"{hook.url}/gehe im")
    with pytest.raises(NoticeError, match="the webhook 'oncall' could not be asked: InvalidURL") as refused:
        WebhookNotifier("oncall").notify({"notice": NOTICE})  # type: ignore[typeddict-unknown-key]
    assert "gehe" not in str(refused.value)


def made(**parts: Any) -> Connection:
    return Connection(conn_id="c", conn_type="http", **parts)


def test_an_address_is_in_the_host_or_made_of_its_parts() -> None:
    assert address("c", made(host="https://hooks.example.com/a")) == "https://hooks.example.com/a"
    assert address("c", made(host="hooks", schema="http", port=81)) == "http://hooks:81"
    assert address("c", made(host="hooks")) == "https://hooks"
    for host in ("file:///etc/passwd", "", None):
        with pytest.raises(ConfigurationError, match="holds no http address"):
            address("c", made(host=host))
