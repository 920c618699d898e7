"""`twinlog switchover FLOW`: the target takes over while the source is alive; nothing is lost, nothing read again."""

from __future__ import annotations

import argparse
import functools
from typing import TYPE_CHECKING, Any

from twinlog.commands import approving
from twinlog.commands.arguments import seconds
from twinlog.commands.console import Console
from twinlog.commands.failover import add_start_options, request_of, write_csv
from twinlog.commands.flow_context import FlowContext
from twinlog.commands.takeover_display import plan_lines, result_lines

if TYPE_CHECKING:
    from twinlog.operations.switchover import Switchover, SwitchoverResult


def add_to(verbs: Any, common: argparse.ArgumentParser) -> None:
    parser = verbs.add_parser(
        "switchover", parents=[common], help="let the target take over while the source is alive, with nothing lost"
    )
    parser.add_argument("flow", metavar="FLOW", help="such as nyc->lon")
    parser.add_argument(
        "--block-writes", action="store_true", help="deny writing to the source's topics, by ACLs, to everybody but us"
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=600.0,
        help="how long both logs may take to be equal (600)",
    )
    parser.add_argument(
        "--undo", action="store_true", help="take back what a switchover that was cut short left: denials and the pause"
    )
    add_start_options(parser)
    approving.add_options(parser)
    parser.set_defaults(run=run)


def run(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.operations.switchover_proof import switchover_of  # noqa: PLC0415 - as above
    from twinlog.operations.takeover_result import TakeoverResult  # noqa: PLC0415 - keeps --help quick

    request = request_of(asked)
    if not asked.undo:
        approving.demand_somebody(asked, f"{asked.flow} is only switched over with somebody's yes.")
    context = FlowContext(asked)
    switchover = switchover_of(context, within_s=asked.timeout)
    if asked.undo:
        sentence = switchover.undo()
        console.result([sentence], {"flow": context.flow.name, "undone": sentence})
        return 0
    begun = switchover.failover.unfinished()
    plan = switchover.plan(request) if begun is None else begun
    write_csv(asked, plan)
    lines = list(plan_lines(plan, switchover.failover.plan_path(plan)))
    if asked.dry_run:
        console.result(lines, TakeoverResult(plan, dry_run=True).to_json())
        return 0
    for line in [] if asked.yes else lines:
        console.note(line)
    if not approving.approved(asked, console, f"Switch {plan.flow} over to {plan.target}?"):
        console.note("twinlog: nothing was changed")
        return 0
    return _applied(asked, console, context, switchover, plan)


def _applied(
    asked: argparse.Namespace, console: Console, context: FlowContext, switchover: Switchover, plan: Any
) -> int:
    from twinlog.operations.copy_on_spark import copy_on_spark  # noqa: PLC0415 - as above
    from twinlog.operations.prove_on_spark import prove_on_spark  # noqa: PLC0415 - as above
    from twinlog.operations.spark_session import address, most_tasks, spark_session  # noqa: PLC0415 - as above
    from twinlog.operations.switchover_proof import prove_with  # noqa: PLC0415 - as above

    with spark_session(address(context.topology.spark_for(context.flow))) as spark:
        execute = functools.partial(copy_on_spark, spark)
        tasks = most_tasks(spark, context.flow.lanes)
        prove = prove_with(context, functools.partial(prove_on_spark, spark), tasks=tasks)
        result = switchover.apply(plan, execute, prove, tasks=tasks, block_writes=asked.block_writes)
    console.result(_lines(result), result.to_json())
    late = [result.late] if result.late is not None else []
    for sentence in (*result.takeover.failures, *late, *result.takeover.plan.notes, *result.notes):
        console.note(f"twinlog: {sentence}")
    return result.exit_code


def _lines(result: SwitchoverResult) -> list[str]:
    before = [f"copied in {result.runs} runs; {result.proof}"] if result.proof is not None else []
    after = [result.reverse] if result.reverse is not None else []
    return [*before, *result_lines(result.takeover), *after]
