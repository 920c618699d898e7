"""`twinlog failover FLOW`: the target takes the source's place. The plan first; then, with a yes, its steps."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinlog.commands import approving
from twinlog.commands.arguments import moment, seconds
from twinlog.commands.console import Console
from twinlog.commands.flow_context import FlowContext
from twinlog.commands.takeover_display import plan_lines, result_lines
from twinlog.errors import ConfigurationError

if TYPE_CHECKING:
    from twinlog.model.takeover import Request, TakeoverPlan
    from twinlog.operations.failover import Failover
    from twinlog.operations.takeover_result import TakeoverResult

_STRATEGIES = ("translated", "timestamp", "earliest", "latest")


def add_to(verbs: Any, common: argparse.ArgumentParser) -> None:
    parser = verbs.add_parser("failover", parents=[common], help="let the target take over; the source may be gone")
    parser.add_argument("flow", metavar="FLOW", help="such as nyc->lon")
    add_start_options(parser)
    parser.add_argument(
        "--source-timeout",
        metavar="SECONDS",
        type=seconds,
        default=10.0,
        help="how long the source is given to say what it still can (10)",
    )
    parser.add_argument(
        "--watch",
        action="store_true",
        help="watch the source, and fail over once every probe has found it gone for as long as the flow says; only "
        "where it says failover.automatic: true",
    )
    parser.add_argument("--plan", metavar="ID", help="carry out this plan, made before, instead of making one")
    approving.add_options(parser)
    parser.set_defaults(run=run)


def add_start_options(parser: argparse.ArgumentParser) -> None:
    """Where groups go on, and where the plan is written to."""
    parser.add_argument(
        "--strategy",
        choices=_STRATEGIES,
        default="translated",
        help="where groups go on: where they stopped, at a time, at the first or behind the last record (translated)",
    )
    parser.add_argument(
        "--group-strategy",
        metavar="RE=STRATEGY",
        action="append",
        default=[],
        help="another strategy for groups of these names; may be repeated, and the first that matches holds",
    )
    parser.add_argument(
        "--at", metavar="TIME", type=moment, help="for timestamp: 2026-01-31T12:00:00Z, or milliseconds"
    )
    parser.add_argument(
        "--margin", metavar="SECONDS", type=seconds, default=0.0, help="for timestamp: so much before that time (0)"
    )
    parser.add_argument("--groups", metavar="RE", help="only groups of these names")
    parser.add_argument(
        "--over-own-positions",
        action="store_true",
        help="also where a group has made a newer position on the target itself",
    )
    parser.add_argument(
        "--csv", metavar="FILE", type=Path, help="write the plan for kafka-consumer-groups --reset-offsets --from-file"
    )


def run(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.operations.takeover_result import TakeoverResult  # noqa: PLC0415 - keeps --help quick

    request = request_of(asked)
    if asked.watch:
        return _watch(asked, console, request)
    approving.demand_somebody(asked, f"{asked.flow} is only failed over with somebody's yes.")
    failover = _failover(asked, FlowContext(asked))
    plan = _plan(asked, console, failover, request)
    write_csv(asked, plan)
    lines = list(plan_lines(plan, failover.plan_path(plan)))
    if asked.dry_run:
        console.result(lines, TakeoverResult(plan, dry_run=True).to_json())
        for note in plan.notes:
            console.note(f"twinlog: {note}")
        return 0
    for line in [] if asked.yes else lines:
        console.note(line)
    if not approving.approved(asked, console, f"Fail {plan.flow} over to {plan.target}?"):
        console.note("twinlog: nothing was changed")
        return 0
    return _show(console, failover.apply(plan))


def _watch(asked: argparse.Namespace, console: Console, request: Request) -> int:
    from twinlog.model.takeover import Request as Asked  # noqa: PLC0415 - keeps --help quick
    from twinlog.operations.automatic_failover import AutomaticFailover  # noqa: PLC0415 - as above

    if request != Asked() or asked.dry_run or asked.plan is not None or asked.csv is not None:
        raise ConfigurationError("--watch takes no other options: groups go on where they stopped")
    context = FlowContext(asked)
    source, target = context.access("source"), context.access("target")
    watching = AutomaticFailover(
        context.flow, source, target, _failover(asked, context), lambda sentence: console.note(f"twinlog: {sentence}")
    )
    result = watching.watch()
    if result is None:
        return 0
    return _show(console, result)


def _failover(asked: argparse.Namespace, context: FlowContext) -> Failover:
    from twinlog.operations.failover import Failover  # noqa: PLC0415 - as above

    return Failover(
        context.topology,
        context.flow,
        context.access("source"),
        context.access("target"),
        context.ledger(),
        source_within_s=asked.source_timeout,
    )


def _show(console: Console, result: TakeoverResult) -> int:
    console.result(result_lines(result), result.to_json())
    for sentence in (*result.failures, *result.plan.notes):
        console.note(f"twinlog: {sentence}")
    return result.exit_code


def _plan(asked: argparse.Namespace, console: Console, failover: Failover, request: Request) -> TakeoverPlan:
    if asked.plan is not None:
        return failover.kept(asked.plan)
    begun = failover.unfinished()
    if begun is None:
        return failover.plan(request)
    if asked.dry_run:
        console.note(
            f"twinlog: the takeover by the plan {begun.id} has begun and not ended; failing over goes on with it"
        )
        return failover.plan(request)
    console.note(f"twinlog: the takeover by the plan {begun.id} had begun and not ended; it goes on")
    return begun


def request_of(asked: argparse.Namespace) -> Request:
    """What the arguments say of where groups go on."""
    from twinlog.model.takeover import Request, Strategy, override_of  # noqa: PLC0415 - keeps --help quick

    try:
        overrides = tuple(override_of(text) for text in asked.group_strategy)
    except ConfigurationError as wrong:
        raise ConfigurationError(f"--group-strategy: {wrong}") from None
    return Request(
        Strategy(asked.strategy),
        overrides,
        asked.at,
        int(asked.margin * 1000),
        asked.groups,
        asked.over_own_positions,
    )


def write_csv(asked: argparse.Namespace, plan: TakeoverPlan) -> None:
    from twinlog.model.takeover import reset_csv  # noqa: PLC0415 - as above

    if asked.csv is None:
        return
    try:
        asked.csv.write_text(reset_csv(plan.rows, with_group=plan.groups != 1), encoding="utf-8")
    except OSError as failure:
        raise ConfigurationError(f"--csv: {asked.csv} can't be written: {failure.strerror}") from None
