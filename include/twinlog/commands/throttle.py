"""`twinlog throttle FLOW RATE`: how fast a run that is under way may write; its tasks follow within seconds."""

from __future__ import annotations

import argparse
from typing import Any

from twinlog.commands.console import Console
from twinlog.commands.flow_context import FlowContext

_OFF = "off"


def add_to(verbs: Any, common: argparse.ArgumentParser) -> None:
    parser = verbs.add_parser("throttle", parents=[common], help="change the rate of a run that is under way")
    parser.add_argument("flow", metavar="FLOW", help="such as nyc->lon")
    parser.add_argument("rate", metavar="MB/s", type=_rate, help=f"over all tasks; {_OFF!r} lifts it")
    parser.set_defaults(run=run)


def run(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.operations.throttling import change_throttle  # noqa: PLC0415 - keeps --help quick

    context = FlowContext(asked)
    before = change_throttle(context.flow, context.access("target"), asked.rate)
    console.result(
        [f"{context.flow.name}: {_shown(asked.rate)}, was {_shown(before)}; the next run begins with the topology's"],
        {"flow": context.flow.name, "throttle": asked.rate, "before": before},
    )
    return 0


def _shown(rate: float | None) -> str:
    return "no throttle" if rate is None else f"{rate:g} MB/s"


def _rate(text: str) -> float | None:
    if text == _OFF:
        return None
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number of MB/s above 0, or {_OFF!r}, not {text!r}")
    return rate
