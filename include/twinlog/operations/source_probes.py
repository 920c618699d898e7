"""Independent ways to tell whether a flow's source is alive, each with its own path there.

    brokers     our own client reaches a bootstrap server
    heartbeat   the newest heartbeat that has reached the target is young
    command     somebody's own look from elsewhere
    url         an address that answers while the source is alive

A probe that can't tell says so, which is no vote for anything.
"""

from __future__ import annotations

import shlex
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.secrets import remember, resolve
from twinlog.errors import ClusterUnreachableError, ConfigurationError, TwinlogError
from twinlog.model.automatic_failover import LEAST_PROBES, Vote, Votes
from twinlog.model.flow_state import State
from twinlog.model.topology import Flow
from twinlog.operations.asking import ask_all
from twinlog.operations.flow_gate import record_of
from twinlog.operations.heartbeat import heartbeat_age

Probe = Callable[[], Vote]

_ENDS = {0: Vote.ALIVE, 1: Vote.GONE}


class SourceProbes:
    """Every probe that a flow has."""

    def __init__(self, flow: Flow, source: ClusterAccess, target: ClusterAccess) -> None:
        self._flow = flow
        self._source = source
        self._target = target
        self._timeout_s = float(flow.failover_probe_seconds)
        self.probes: Mapping[str, Probe] = self._made()
        if len(self.probes) < LEAST_PROBES:
            raise ConfigurationError(
                f"{flow.name}: a failover by itself needs {LEAST_PROBES} independent probes, and there is only "
                f"{', '.join(self.probes)}: turn on emit.heartbeats.enabled, or set failover.probe.command or "
                "failover.probe.url"
            )

    def ask(self) -> Votes:
        """What each says now, all at once; one that hangs can't tell."""
        answers = ask_all(self.probes, self._timeout_s, lambda name: f"the probe {name}")
        return {name: Vote.UNKNOWN if isinstance(vote, TwinlogError) else vote for name, vote in answers.items()}

    def _made(self) -> dict[str, Probe]:
        flow = self._flow
        found: dict[str, Probe] = {"brokers": self._brokers}
        if flow.emit_heartbeats_enabled and flow.heartbeats_replication_enabled:
            found["heartbeat"] = self._heartbeat
        if flow.failover_probe_command is not None:
            found["command"] = self._command
        if flow.failover_probe_url is not None:
            found["url"] = self._url
        return found

    def _brokers(self) -> Vote:
        try:
            with self._source.raw(self._timeout_s):
                return Vote.ALIVE
        except ClusterUnreachableError:
            return Vote.GONE
        except TwinlogError:
            # Whoever refuses us is there.
            return Vote.ALIVE

    def _heartbeat(self) -> Vote:
        with self._target.raw(self._timeout_s) as target:
            if target.run(record_of(self._flow, target)).state is not State.ACTIVE:
                return Vote.UNKNOWN
            age_s = heartbeat_age(self._flow, self._target, target)
        if age_s is None:
            return Vote.UNKNOWN
        return Vote.GONE if age_s > self._flow.failover_probe_heartbeat_seconds else Vote.ALIVE

    def _command(self) -> Vote:
        command = shlex.split(self._flow.failover_probe_command or "")
        try:
            done = subprocess.run(command, capture_output=True, timeout=self._timeout_s, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return Vote.UNKNOWN
        return _ENDS.get(done.returncode, Vote.UNKNOWN)

    def _url(self) -> Vote:
        written = self._flow.failover_probe_url or ""
        address = resolve({"failover.probe.url": written})["failover.probe.url"]
        if address != written:
            remember(address)
        if not address.startswith(("http://", "https://")):
            return Vote.UNKNOWN
        try:
            with urllib.request.urlopen(address, timeout=self._timeout_s):  # noqa: S310 - http or https, see above
                return Vote.ALIVE
        except urllib.error.HTTPError as refused:
            refused.close()
            return Vote.GONE
        except OSError:
            return Vote.GONE
