"""The Schema Registry's topic: records in its published format, and a read-only registry over what a cluster has."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from support.mirroring import producer
from support.reading import read_committed

SETTINGS = {"cleanup.policy": "compact"}


def register(  # noqa: PLR0917 - what a version consists of
    servers: str, topic: str, subject: str, version: int, number: int, schema: str
) -> None:
    """Write one version as a registry does."""
    key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    value = {"subject": subject, "version": version, "id": number, "schema": schema, "deleted": False}
    writer = producer(servers)
    # A registry writes such a record before each, to know where the log ends.
    writer.produce(topic, key=json.dumps({"keytype": "NOOP", "magic": 0}).encode(), value=None)
    writer.produce(topic, json.dumps(value).encode(), json.dumps(key).encode())
    assert writer.flush(30) == 0


def framed(number: int, content: bytes) -> bytes:
    """A value as Confluent's serializers write it."""
    return b"\x00" + number.to_bytes(4, "big") + content


@contextmanager
def registry(servers: str, topic: str) -> Iterator[str]:
    """Serves what the cluster's topic holds now; its address."""
    schemas: dict[int, str] = {}
    for seen in read_committed(servers, topic)[0]:
        if seen.value is not None and json.loads(seen.key or b"{}").get("keytype") == "SCHEMA":
            said = json.loads(seen.value)
            schemas[said["id"]] = said["schema"]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            number = int(self.path.split("?")[0].rpartition("/")[2])
            found = schemas.get(number)
            body = {"schema": found} if found else {"error_code": 40403, "message": f"Schema {number} not found"}
            content = json.dumps(body).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
