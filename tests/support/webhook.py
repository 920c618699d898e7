"""Somebody who is told of things: a server on this machine that keeps what is posted to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@dataclass(frozen=True)
class Webhook:
    """Its address, and what came, each with the token that came with it; to `/no` it answers that it may not be,
    and to `/moved` that it is to be had at `/yes`."""

    url: str
    posted: list[dict[str, Any]] = field(default_factory=list)

    def notices(self, kind: str, flow: str) -> list[dict[str, Any]]:
        found = [one["notice"] for one in self.posted]
        return [notice for notice in found if (notice["kind"], notice["flow"]) == (kind, flow)]


@contextmanager
def webhook() -> Iterator[Webhook]:
    posted: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            posted.append({"authorization": self.headers["Authorization"], **body})
            self.send_response({"no": 403, "moved": 302}.get(self.path.split("/")[1], 204))
            self.send_header("Location", "/yes")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        try:
            yield Webhook(f"http://127.0.0.1:{server.server_port}", posted)
        finally:
            server.shutdown()
            serving.join()
