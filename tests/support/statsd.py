"""Where Airflow's metrics go in tests: a StatsD server on this machine that keeps the last value of every gauge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from socketserver import BaseRequestHandler, UDPServer
from threading import Thread

Gauge = tuple[str, frozenset[tuple[str, str]]]
"""Its name and its tags."""


@dataclass(frozen=True)
class Measured:
    """Its port, and what came."""

    port: int
    gauges: dict[Gauge, float] = field(default_factory=dict)

    @property
    def environ(self) -> Mapping[str, str]:
        """What makes an Airflow send here."""
        return {
            "AIRFLOW__METRICS__STATSD_ON": "True",
            "AIRFLOW__METRICS__STATSD_HOST": "127.0.0.1",
            "AIRFLOW__METRICS__STATSD_PORT": str(self.port),
            "AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED": "True",
        }

    def of(self, name: str, **tags: str) -> float | None:
        """The last value of a gauge of ours; None where none came."""
        return self.gauges.get((f"airflow.{name}", frozenset(tags.items())))

    def names(self, **tags: str) -> set[str]:
        """The gauges of ours that came with these tags, and any others."""
        wanted = set(tags.items())
        found = {name.removeprefix("airflow.") for name, given in list(self.gauges) if wanted <= given}
        return {name for name in found if name.startswith("twinlog_")}

    def errors(self, flow: str) -> set[tuple[str, str]]:
        """Each step of a flow that an error has ended, with its kind."""
        found = [(name, dict(given), value) for (name, given), value in list(self.gauges.items())]
        return {
            (given["step"], given["kind"])
            for name, given, value in found
            if name == "airflow.twinlog_errors" and given["flow"] == flow and value
        }


@contextmanager
def statsd() -> Iterator[Measured]:
    gauges: dict[Gauge, float] = {}

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            for line in self.request[0].decode().splitlines():
                text, _, kind = line.partition("|")
                given, _, value = text.rpartition(":")
                name, *tags = given.split(",")
                if kind == "g":
                    gauges[name, frozenset((tag.partition("=")[0], tag.partition("=")[2]) for tag in tags)] = float(
                        value
                    )

    with UDPServer(("127.0.0.1", 0), Handler) as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        try:
            yield Measured(server.server_address[1], gauges)
        finally:
            server.shutdown()
            serving.join()
