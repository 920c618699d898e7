"""One node of a local cluster: its folder, its process and what can happen to it.

The folder holds server.properties, the data and the log; it and the ports outlive the process, so a node that
was stopped or killed can be started again as the same one.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from local.certificates import write_private
from local.errors import StartError
from local.kafka import properties
from local.kafka.readiness import BrokerProbe
from local.processes import Process, await_ready

# SerialGC: with a small heap on few cores the other collectors only add threads.
_JVM = ["-XX:+UseSerialGC", "-Djava.awt.headless=true", "-Xms64m"]
_LOGGING = Path(__file__).resolve().parent.parent / "log4j2.properties"


@dataclass(frozen=True)
class Java:
    """How to run a class of Kafka."""

    command: Path
    class_path: str
    heap_mb: int
    quick_start: bool
    class_archive: tuple[str, ...] = ()
    """The JVM's options about it, see `local.kafka.class_archive`."""

    def run(self, main: str, *arguments: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={_LOGGING}"
        options = [*_JVM, f"-Xmx{self.heap_mb}m", logging, *self.class_archive]
        if self.quick_start:
            options.append("-XX:TieredStopAtLevel=1")
        return [str(self.command), *options, "-cp", self.class_path, main, *arguments]


class Node:
    def __init__(self, name: str, folder: Path, settings: Mapping[str, str], probe: BrokerProbe, java: Java) -> None:
        self.name = name
        self.log = folder / "broker.log"
        self._properties = folder / "server.properties"
        self._probe = probe
        self._java = java
        self._process: Process | None = None
        folder.mkdir(parents=True, exist_ok=True)
        # It may hold passwords of SASL PLAIN.
        write_private(self._properties, properties.as_file(settings).encode("latin-1"))

    @property
    def process(self) -> Process:
        if self._process is None:
            raise StartError(f"{self.name} has not been started.")
        return self._process

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    def format(self, cluster_id: str) -> Process:
        """Begins to prepare the data folder; an already formatted one stays as it is."""
        command = self._java.run(
            "kafka.tools.StorageTool",
            "format",
            f"--config={self._properties}",
            f"--cluster-id={cluster_id}",
            "--ignore-formatted",
        )
        return self._run(f"formatting {self.name}", command)

    def start(self) -> None:
        if self.running:
            raise StartError(f"{self.name} is running already.")
        self._process = self._run(self.name, self._java.run("kafka.Kafka", str(self._properties)))

    def await_ready(self, timeout_s: float) -> None:
        await_ready(self.process, self._probe.answers, timeout_s)

    def kill(self) -> None:
        """As when the machine loses power."""
        self.process.kill()

    def pause(self) -> None:
        """The node hangs: its connections stay open and nothing answers."""
        self.process.send(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send(signal.SIGCONT)

    def _run(self, name: str, command: Sequence[str]) -> Process:
        # Kafka's own variables would change how its classes start.
        environ = {key: value for key, value in os.environ.items() if not key.startswith("KAFKA_")}
        return Process(name, command, self.log, environ)
