"""A notifier that posts each notice, as JSON, to the address that an Airflow connection holds.

The connection's host is the whole address (`https://hooks.example.com/twinlog`), or a host with the scheme in its
schema; a password is sent as a bearer token. The object's `text` is what chat systems show; `notice` is for programs.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier

from twinlog.errors import ConfigurationError, NoticeError

if TYPE_CHECKING:
    from airflow.sdk import Connection, Context

    from twinlog.airflow.notices import Notice

TIMEOUT_S = 10.0


class _Elsewhere(urllib.request.HTTPRedirectHandler):
    """Follows nobody: the next request would carry the token to wherever the answer says, and not the notice."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_Elsewhere)


class WebhookNotifier(BaseNotifier):
    """Posts to one address."""

    def __init__(self, connection_id: str) -> None:
        super().__init__()
        self.connection_id = connection_id

    def notify(self, context: Context) -> None:
        from airflow.sdk import BaseHook  # noqa: PLC0415 - importing Airflow's hooks is dear and only tasks come here

        connection = BaseHook.get_connection(self.connection_id)
        url = address(self.connection_id, connection)
        headers = {"Content-Type": "application/json"}
        if connection.password:
            headers["Authorization"] = f"Bearer {connection.password}"
        body = json.dumps(message(context["notice"])).encode()  # type: ignore[typeddict-item]
        request = urllib.request.Request(url, body, headers, method="POST")  # noqa: S310 - `address` takes http only
        try:
            _OPENER.open(request, timeout=TIMEOUT_S).close()
        except urllib.error.HTTPError as error:
            error.close()
            # An address may hold a token, so neither it nor an answer that repeats it is shown.
            raise NoticeError(f"the webhook {self.connection_id!r} answered with {error.code}") from None
        except OSError as error:
            raise NoticeError(f"the webhook {self.connection_id!r} did not answer: {error}") from None
        except HTTPException as error:
            raise NoticeError(
                f"the webhook {self.connection_id!r} could not be asked: {type(error).__name__}"
            ) from None


def address(connection_id: str, connection: Connection) -> str:
    """Where to post to."""
    host = connection.host or ""
    if "://" not in host:
        port = f":{connection.port}" if connection.port else ""
        host = f"{connection.schema or 'https'}://{host}{port}"
    if not host.startswith(("http://", "https://")) or host.endswith("://"):
        raise ConfigurationError(f"the Airflow connection {connection_id!r} holds no http address: put it in its host")
    return host


def message(notice: Notice) -> dict[str, Any]:
    """What is posted."""
    lines = [line for line in (notice.title, notice.text, notice.link) if line]
    return {"text": "\n".join(lines), "notice": notice.to_json()}
