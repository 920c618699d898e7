"""`twinlog failback FLOW`: the way back after the source of a flow that had failed over has returned."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from twinlog.commands import approving
from twinlog.commands.arguments import seconds
from twinlog.commands.console import Console
from twinlog.commands.flow_context import FlowContext
from twinlog.commands.progress_display import show_on

if TYPE_CHECKING:
    from twinlog.operations.failback import Failback
    from twinlog.operations.failback_plan import FailbackPlan, FailbackResult

_MODES = ("resume", "rebuild")
_STRANDED = ("leave", "topic", "append")


def add_to(verbs: Any, common: argparse.ArgumentParser) -> None:
    parser = verbs.add_parser("failback", parents=[common], help="return home once the source is back")
    parser.add_argument("flow", metavar="FLOW", help="such as nyc->lon")
    parser.add_argument(
        "--mode",
        choices=_MODES,
        default="resume",
        help="resume: the source's data is intact (default); rebuild: it is lost, and everything comes from the target",
    )
    parser.add_argument(
        "--stranded",
        choices=_STRANDED,
        default="leave",
        help="records that never crossed are left on the source (default), sent to TOPIC.stranded on the target, or "
        "appended on the target",
    )
    parser.add_argument(
        "--rebuild-damaged",
        action="store_true",
        help="in mode resume, rebuild the topics that have lost what had been mirrored",
    )
    parser.add_argument(
        "--accept-degraded", action="store_true", help="begin although the returned cluster is not whole"
    )
    parser.add_argument(
        "--block-writes", action="store_true", help="keep producers on the target from writing by ACLs, at the end"
    )
    parser.add_argument(
        "--also",
        metavar="TOPIC",
        action="append",
        default=[],
        help="a topic that was made on the target while it led and is to go home too; may be given more than once",
    )
    parser.add_argument("--quiet", metavar="SECONDS", type=seconds, help="cut when nobody has written for so long (5)")
    parser.add_argument("--timeout", metavar="SECONDS", type=seconds, help="how long to wait for that (600)")
    approving.add_options(parser)
    parser.add_argument("--abandon", action="store_true", help="end a failback that is under way; the target leads on")
    parser.set_defaults(run=run)


def run(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.model.failback import Mode, Stranded  # noqa: PLC0415 - keeps --help quick
    from twinlog.operations.failback_plan import FailbackRequest  # noqa: PLC0415 - as above

    if not asked.abandon:
        approving.demand_somebody(asked, f"{asked.flow} is only failed back with somebody's yes.")
    failback = _failback(asked, console)
    if asked.abandon:
        sentence = failback.abandon()
        console.result([sentence], {"flow": failback.flow.name, "abandoned": True})
        return 0
    request = FailbackRequest(
        Mode(asked.mode),
        Stranded(asked.stranded),
        rebuild_damaged=asked.rebuild_damaged,
        accept_degraded=asked.accept_degraded,
        block_writes=asked.block_writes,
        also=tuple(asked.also),
    )
    plan = failback.plan(request)
    if asked.dry_run or plan.refused:
        console.result(_plan_lines(plan), {"flow": plan.flow, "plan": plan.to_json(), "complete": False})
        for problem in plan.refused:
            console.note(f"twinlog: {problem}")
        return 1 if plan.refused else 0
    for line in () if asked.yes else _plan_lines(plan):
        console.note(line)
    if not approving.approved(asked, console, f"Fail {plan.flow} back to {plan.source}?"):
        console.note("twinlog: nothing was changed")
        return 0
    result = _carried_out(failback, plan)
    console.result(_lines(result), result.to_json())
    for sentence in (*result.warnings, *([result.failure] if result.failure else [])):
        console.note(f"twinlog: {sentence}")
    return result.exit_code


def _failback(asked: argparse.Namespace, console: Console) -> Failback:
    from twinlog.operations.directions import with_way_home  # noqa: PLC0415 - brings the Kafka clients
    from twinlog.operations.failback import QUIET_S, SEAM_WITHIN_S, Failback  # noqa: PLC0415 - as above
    from twinlog.operations.flow_reach import FlowReach  # noqa: PLC0415 - as above

    context = FlowContext(asked)
    topology, home = with_way_home(context.topology, context.flow)
    return Failback(
        context.topology,
        context.flow,
        context.ends(),
        FlowReach(topology, home).ends(),
        context.ledger(),
        show=show_on(console),
        say=console.note,
        quiet_s=asked.quiet or QUIET_S,
        seam_within_s=asked.timeout or SEAM_WITHIN_S,
    )


def _carried_out(failback: Failback, plan: FailbackPlan) -> FailbackResult:
    from twinlog.operations.copy_on_spark import copy_on_spark  # noqa: PLC0415 - keeps --help quick
    from twinlog.operations.spark_session import address, most_tasks, spark_session  # noqa: PLC0415 - as above

    where = address(failback.topology.spark_for(failback.flow))
    with spark_session(where) as spark:
        tasks = most_tasks(spark, failback.flow.lanes)
        return failback.carry_out(plan, functools.partial(copy_on_spark, spark), tasks=tasks)


def _plan_lines(plan: FailbackPlan) -> Iterator[str]:
    yield f"{plan.flow} is {plan.state}; {plan.request.mode}, plan {plan.id}"
    if plan.refused:
        yield "  it can't begin:"
    yield from (f"  - {problem}" for problem in plan.refused)
    if not plan.topics:
        return
    if plan.request.accept_degraded:
        yield from (f"  accepted: {problem}" for problem in plan.health)
    yield from (f"  {number}. {step}" for number, step in enumerate(plan.sentences, 1))
    for one in plan.records:
        yield f"     stranded: {one.topic}-{one.partition} offset {one.offset}, key {one.key!r}"
    if plan.stranded_records > len(plan.records):
        yield f"     and {plan.stranded_records - len(plan.records):,} more"
    yield from (f"  note: {note}" for note in plan.notes)


def _lines(result: FailbackResult) -> Iterator[str]:
    plan, figures = result.plan, result.figures
    if not result.complete:
        left = "nothing" if not result.done else ", ".join(result.done)
        yield f"{plan.flow}: not failed back yet; done: {left}. The same command goes on"
        return
    yield f"{plan.flow} has failed back in {result.seconds:.1f} s, and is active"
    yield f"  came home: {figures.get('came_home', 0):,} records of {len(plan.topics):,} topics"
    if figures.get("stranded_records"):
        yield f"  stranded: {figures['stranded_records']:,} records, kept at {figures['stranded_kept']}"
    yield f"  groups: {figures.get('groups', 0):,} moved, {len(figures.get('groups_left_out', ())):,} rows left out"
    yield f"  compared: {figures.get('verdict') or 'not compared'}"
