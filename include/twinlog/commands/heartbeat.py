"""`twinlog heartbeat FLOW`: writes a sign of life to the flow's source, whose age on the target tells how far it is."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from twinlog.commands.console import Console
from twinlog.commands.flow_context import FlowContext

if TYPE_CHECKING:
    from twinlog.operations.heartbeat import HeartbeatResult


def add_to(verbs: Any, common: argparse.ArgumentParser) -> None:
    parser = verbs.add_parser(
        "heartbeat", parents=[common], help="write a heartbeat to the source; its age on the target shows in status"
    )
    parser.add_argument("flow", metavar="FLOW", help="such as nyc->lon")
    parser.set_defaults(run=run)


def run(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.operations.heartbeat import emit_heartbeat  # noqa: PLC0415 - brings the Kafka clients

    context = FlowContext(asked)
    result = emit_heartbeat(context.flow, context.access("source"), context.access("target"))
    console.result(_lines(result), result.to_json())
    return 0


def _lines(result: HeartbeatResult) -> Iterator[str]:
    yield result.skipped or f"{result.flow}: heartbeat written to {result.topic} on {result.cluster}"
