"""`twinlog repair FLOW`: what the last reconciliation has found is put right; nothing without somebody's yes."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from twinlog.commands import approving
from twinlog.commands.arguments import pattern
from twinlog.commands.console import Console
from twinlog.commands.flow_context import FlowContext

if TYPE_CHECKING:
    from twinlog.operations.repair import Repair
    from twinlog.operations.repair_plan import RepairPlan, RepairResult

_RECORDS = ("recopy", "recover", "leave")


def add_to(verbs: Any, common: argparse.ArgumentParser) -> None:
    parser = verbs.add_parser("repair", parents=[common], help="put right what the last reconciliation has found")
    parser.add_argument("flow", metavar="FLOW", help="such as nyc->lon")
    parser.add_argument(
        "--records",
        choices=_RECORDS,
        default="recopy",
        help="topics whose records differ are copied again into fresh ones that take the twins' places (default; "
        "recovered where that can't be), or what they lack is appended to TWIN.recovered, or they are left",
    )
    parser.add_argument(
        "--topics", metavar="RE", type=pattern, help="records of only the topics whose name this matches"
    )
    parser.add_argument(
        "--accept-loss", action="store_true", help="copy again although a twin has records that the source lost"
    )
    approving.add_options(parser)
    parser.add_argument("--abandon", action="store_true", help="end a repair that was begun; what was done stays")
    parser.set_defaults(run=run)


def run(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.model.repair import Records  # noqa: PLC0415 - keeps --help quick
    from twinlog.operations.repair_plan import RepairRequest  # noqa: PLC0415 - as above

    if not asked.abandon:
        approving.demand_somebody(asked, f"{asked.flow} is only repaired with somebody's yes.")
    repair = _repair(asked, console)
    if asked.abandon:
        sentence = repair.abandon()
        console.result([sentence], {"flow": repair.flow.name, "abandoned": True})
        return 0
    plan = repair.plan(RepairRequest(Records(asked.records), asked.topics, asked.accept_loss))
    if asked.dry_run or plan.refused or not plan.remedies:
        console.result(_plan_lines(plan), {"flow": plan.flow, "plan": plan.to_json(), "complete": False})
        for problem in plan.refused:
            console.note(f"twinlog: {problem}")
        return 1 if plan.refused else 0
    for line in () if asked.yes else _plan_lines(plan):
        console.note(line)
    if not approving.approved(asked, console, f"Repair {plan.flow}?"):
        console.note("twinlog: nothing was changed")
        return 0
    result = _carried_out(repair, plan)
    console.result(_lines(result), result.to_json())
    for sentence in (*result.warnings, *([result.failure] if result.failure else [])):
        console.note(f"twinlog: {sentence}")
    return result.exit_code


def _repair(asked: argparse.Namespace, console: Console) -> Repair:
    from twinlog.operations.flow_reach import FlowReach  # noqa: PLC0415 - brings the Kafka clients
    from twinlog.operations.repair import Repair  # noqa: PLC0415 - as above

    context = FlowContext(asked)
    return Repair(
        context.topology,
        context.flow,
        context.ends(),
        context.ledger(),
        lambda topology, flow: FlowReach(topology, flow).ends(),
        say=console.note,
    )


def _carried_out(repair: Repair, plan: RepairPlan) -> RepairResult:
    from twinlog.operations.copy_on_spark import copy_on_spark  # noqa: PLC0415 - keeps --help quick
    from twinlog.operations.fresh_copy import Executors  # noqa: PLC0415 - as above
    from twinlog.operations.prove_on_spark import prove_on_spark  # noqa: PLC0415 - as above
    from twinlog.operations.spark_session import address, most_tasks, spark_session  # noqa: PLC0415 - as above

    with spark_session(address(repair.topology.spark_for(repair.flow))) as spark:
        copy, prove = functools.partial(copy_on_spark, spark), functools.partial(prove_on_spark, spark)
        return repair.carry_out(plan, Executors(copy, prove, most_tasks(spark, repair.flow.lanes)))


def _plan_lines(plan: RepairPlan) -> Iterator[str]:
    if not plan.remedies and not plan.refused:
        yield f"{plan.flow}: there is nothing to repair"
    else:
        yield f"{plan.flow}: plan {plan.id}{', which was begun before' if plan.under_way else ''}"
    yield from (f"  {number}. {step}" for number, step in enumerate(plan.sentences, 1))
    if plan.refused:
        yield "  it can't begin:"
    yield from (f"  - {problem}" for problem in plan.refused)
    yield from (f"  note: {note}" for note in plan.notes)


def _lines(result: RepairResult) -> Iterator[str]:
    plan = result.plan
    done = ", ".join(result.done) or "nothing"
    if not result.complete:
        yield f"{plan.flow}: not repaired yet; done: {done}. The same command goes on, --abandon ends it"
        return
    yield f"{plan.flow}: repaired in {result.seconds:.1f} s: {done}; compared again: {result.verdict}"
    yield from (f"  {sentence}" for sentence in result.left)
    if result.figures.get("report"):
        yield f"  report: {result.figures['report']}"
