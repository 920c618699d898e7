"""`twinlog pause|resume|drain FLOW`: a person's hand on a flow, wherever its runs are started from."""

from __future__ import annotations

import argparse
from typing import Any

from twinlog.commands.arguments import seconds
from twinlog.commands.console import Console
from twinlog.commands.flow_context import FlowContext

_HELP = {
    "pause": "let no run start; one that is under way commits what it has and ends",
    "resume": "let runs start again",
    "drain": "pause, and wait until nothing of the flow writes any more",
}


def add_to(verbs: Any, common: argparse.ArgumentParser) -> None:
    for action, said in _HELP.items():
        parser = verbs.add_parser(action, parents=[common], help=said)
        parser.add_argument("flow", metavar="FLOW", help="such as nyc->lon")
        if action == "drain":
            parser.add_argument(
                "--timeout", metavar="SECONDS", type=seconds, default=600.0, help="how long to wait (600)"
            )
        parser.set_defaults(run=run)


def run(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.operations.control import DRAINED_WITHIN_S, Action, control  # noqa: PLC0415 - keeps --help quick

    context = FlowContext(asked)
    timeout_s = getattr(asked, "timeout", DRAINED_WITHIN_S)
    result = control(context.flow, context.access("target"), Action(asked.verb), timeout_s=timeout_s)
    console.result([result.sentence], result.to_json())
    return 0
