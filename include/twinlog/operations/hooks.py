"""What is called when a flow has changed sides: a command, a webhook. The third, a DAG, Airflow itself calls (see
`airflow.hook_dag`): without Airflow there is none.

The same is told to all: one JSON object, `event` first. Nothing secret is in it, nor on the command's command line,
and what a command prints goes into the result with the secrets of this process taken out. A hook that fails is told and
undoes nothing; it is called again when the takeover is run again, so hooks must bear being called twice.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from twinlog.cluster.secrets import mask, remember, resolve
from twinlog.errors import SecretError
from twinlog.model.topology import Flow

_KEPT_OUTPUT = 2_000
_MOST_SHOWN = 200


class Event(StrEnum):
    """What has happened to a flow."""

    FAILED_OVER = "failed over"
    SWITCHED_OVER = "switched over"
    FAILED_BACK = "failed back"


@dataclass(frozen=True, slots=True)
class HookResult:
    """What came of one hook."""

    hook: str
    """`command` or `webhook`."""
    failure: str | None = None
    """A sentence; None where it did its work."""
    output: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def run_hooks(flow: Flow, event: Event, told: Mapping[str, Any]) -> tuple[HookResult, ...]:
    """Call every hook that the flow has. `told` has at least `active`, the alias of the cluster that clients use from
    now on, and its `bootstrap_servers`."""
    return tuple(_results(flow, content(flow.name, event, told)))


def content(flow: str, event: Event, told: Mapping[str, Any]) -> dict[str, Any]:
    """What every kind of hook is told."""
    return {"event": str(event), "flow": flow, **told}


def _results(flow: Flow, told: Mapping[str, Any]) -> Iterator[HookResult]:
    if flow.hook_command is not None:
        yield _run(shlex.split(flow.hook_command), told, flow.hook_timeout_seconds)
    if flow.hook_webhook is not None:
        yield _post(flow.hook_webhook, told, flow.hook_timeout_seconds)


def _run(command: list[str], told: Mapping[str, Any], timeout_s: float) -> HookResult:
    names = {"event": "EVENT", "flow": "FLOW", "active": "ACTIVE", "bootstrap_servers": "BOOTSTRAP_SERVERS"}
    environ = {f"TWINLOG_{variable}": str(told.get(name, "")) for name, variable in names.items()}
    try:
        done = subprocess.run(
            command,
            input=json.dumps(told),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, **environ},
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return HookResult("command", f"the hook command did not end within {timeout_s:g} s, and was ended")
    except OSError as failure:
        return HookResult("command", f"the hook command could not be run: {failure}")
    output = mask(done.stdout[-_KEPT_OUTPUT:])
    if done.returncode:
        last = output.strip()[-_MOST_SHOWN:]
        return HookResult("command", f"the hook command ended with {done.returncode}: {last}", output)
    return HookResult("command", output=output)


def _post(written: str, told: Mapping[str, Any], timeout_s: float) -> HookResult:
    try:
        address = resolve({"hook.webhook": written})["hook.webhook"]
    except SecretError as missing:
        return HookResult("webhook", f"the webhook's address is not known: {missing}")
    if address != written:
        remember(address)
    if not address.startswith(("http://", "https://")):
        return HookResult("webhook", "the webhook's address is neither http nor https")
    body = json.dumps(told).encode()
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"}, method="POST")  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=timeout_s):  # noqa: S310 - http or https, as was made sure
            return HookResult("webhook")
    except urllib.error.HTTPError as refused:
        refused.close()
        return HookResult("webhook", f"the webhook answered with {refused.code}")
    except OSError as failure:
        return HookResult("webhook", mask(f"the webhook did not answer: {failure}"))
