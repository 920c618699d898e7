"""`twinlog migrate FLOW`: a cluster moved for good, from its settings to the clean-up, going on wherever it stopped."""

from __future__ import annotations

import argparse
import functools
import getpass
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from twinlog.commands import approving
from twinlog.commands.arguments import moment, seconds
from twinlog.commands.console import Console
from twinlog.commands.flow_context import FlowContext
from twinlog.commands.progress_display import show_on
from twinlog.commands.takeover_display import plan_lines
from twinlog.errors import ConfigurationError
from twinlog.model.migration import Phase, named_beginning

if TYPE_CHECKING:
    from twinlog.model.takeover import TakeoverPlan
    from twinlog.operations.migrate import Asked, MigrateResult, Migrating
    from twinlog.operations.migration_cut_over import CuttingOver


def add_to(verbs: Any, common: argparse.ArgumentParser) -> None:
    parser = verbs.add_parser("migrate", parents=[common], help="move a cluster: backfill, proof and cut-over")
    parser.add_argument("flow", metavar="FLOW", help="such as nyc->lon")
    parser.add_argument(
        "--from",
        dest="from_ms",
        metavar="TIME",
        type=moment,
        help="only what was written then or later (2026-01-31T12:00:00Z, or milliseconds); otherwise all that is kept",
    )
    parser.add_argument(
        "--from-offset",
        metavar="TOPIC:PARTITION:OFFSET",
        action="append",
        default=[],
        help="begin this partition here; may be repeated",
    )
    parser.add_argument(
        "--throttle", metavar="MB/s", type=_rate, help="over all tasks; `twinlog throttle` changes it on the way"
    )
    parser.add_argument(
        "--blackout",
        metavar="WINDOW",
        action="append",
        help='backfill nothing then, in UTC: "mon-fri 08:00-18:00", or "fri 18:00-mon 06:00"; may be repeated',
    )
    parser.add_argument("--priority", metavar="RE", nargs="+", help="topics to backfill first, the most urgent first")
    parser.add_argument(
        "--adopt",
        choices=("mm2", "other"),
        help="go on where MirrorMaker 2, or another mirror that copies in order, was stopped, by comparing both logs",
    )
    parser.add_argument(
        "--clean-up", action="store_true", help="after the cut-over: remove what Twinlog has left on both clusters"
    )
    parser.add_argument(
        "--without-source", action="store_true", help="with --clean-up: the source is switched off, and is not asked"
    )
    parser.add_argument(
        "--give-up",
        action="store_true",
        help="end the migration before its cut-over: retention is the source's again, and the flow mirrors on",
    )
    parser.add_argument(
        "--block-writes",
        action="store_true",
        help="at the cut-over, deny writing to the source's topics, by ACLs, to everybody but us",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=600.0,
        help="how long both logs may take to be equal at the cut-over (600)",
    )
    approving.add_options(parser)
    parser.set_defaults(run=run)


def run(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.operations.migrate import Migrating  # noqa: PLC0415 - keeps --help quick
    from twinlog.operations.migration_cut_over import CuttingOver  # noqa: PLC0415 - as above
    from twinlog.operations.switchover_proof import switchover_of  # noqa: PLC0415 - as above

    wanted = _asked(asked)
    context = FlowContext(asked)
    flow, topology, ends, ledger = context.flow, context.topology, context.ends(), context.ledger()
    migrating = Migrating(topology, flow, ends, ledger, show=show_on(console), tell=console.note)
    switchover = switchover_of(context, within_s=asked.timeout)
    cutting = CuttingOver(topology, flow, ends, ledger, migrating.course, switchover)
    if asked.give_up:
        return _tell(console, _given_up(asked, console, migrating, flow.name))
    if asked.dry_run:
        return _looked(console, migrating, cutting, wanted)
    if asked.clean_up:
        return _tell(console, _cleaned_up(asked, console, migrating, flow.name))
    return _go_on(asked, console, migrating, cutting, wanted)


def _go_on(
    asked: argparse.Namespace, console: Console, migrating: Migrating, cutting: CuttingOver, wanted: Asked
) -> int:
    """As far as it goes, and over the cut-over where somebody says yes."""
    from twinlog.operations.copy_on_spark import copy_on_spark  # noqa: PLC0415 - keeps --help quick
    from twinlog.operations.prove_on_spark import prove_on_spark  # noqa: PLC0415 - as above
    from twinlog.operations.spark_session import address, most_tasks, spark_session  # noqa: PLC0415 - as above

    flow = cutting.flow
    with spark_session(address(cutting.topology.spark_for(flow))) as spark:
        copy, prove = functools.partial(copy_on_spark, spark), functools.partial(prove_on_spark, spark)
        tasks = most_tasks(spark, flow.lanes)
        done = migrating.run(wanted, copy, prove, tasks=tasks)
        if done.failures or done.migration.is_cut_over:
            return _tell(console, done)
        plan = cutting.plan()
        if plan is None or not _approves(asked, console, cutting, plan):
            said = (
                f"the cut-over waits for somebody to approve it: `twinlog migrate {flow.name!r}` asks, --yes approves"
            )
            return _tell(console, replace(done, waits_for=said))
        over = cutting.carry_out(plan, copy, prove, approved_by=whoever(), tasks=tasks, block_writes=asked.block_writes)
    whole = replace(
        done,
        migration=over.migration,
        done=(*done.done, *over.done),
        notes=(*done.notes, *over.notes),
        failures=over.failures,
        report=migrating.report(),
    )
    return _tell(console, whole)


def _approves(asked: argparse.Namespace, console: Console, cutting: CuttingOver, plan: TakeoverPlan) -> bool:
    for line in plan_lines(plan, cutting.switchover.failover.plan_path(plan)):
        console.note(line)
    if not asked.yes and not sys.stdin.isatty():
        return False
    return approving.approved(asked, console, f"Cut {plan.flow} over to {plan.target}?")


def _looked(console: Console, migrating: Migrating, cutting: CuttingOver, wanted: Asked) -> int:
    """What is left to be done; the plan of the cut-over where that is next."""
    looked = migrating.look(wanted)
    if looked.migration.phase is Phase.CUT_OVER:
        plan = cutting.plan()
        for line in [] if plan is None else plan_lines(plan, cutting.switchover.failover.plan_path(plan)):
            console.note(line)
    return _tell(console, looked)


def _cleaned_up(asked: argparse.Namespace, console: Console, migrating: Migrating, flow: str) -> MigrateResult:
    approving.demand_somebody(asked, f"What Twinlog keeps of {flow} is only removed with somebody's yes.")
    if not approving.approved(asked, console, f"Remove journal, state and positions of {flow} for good?"):
        raise ConfigurationError(f"{flow}: nothing was removed")
    return migrating.clean_up(without_source=asked.without_source)


def _given_up(asked: argparse.Namespace, console: Console, migrating: Migrating, flow: str) -> MigrateResult:
    approving.demand_somebody(asked, f"The migration of {flow} is only given up with somebody's yes.")
    if not approving.approved(asked, console, f"Give the migration of {flow} up, and mirror on?"):
        raise ConfigurationError(f"{flow}: its migration goes on")
    return migrating.give_up()


def _tell(console: Console, result: MigrateResult) -> int:
    console.result(_lines(result), result.to_json())
    for sentence in (*result.notes, *result.failures):
        console.note(f"twinlog: {sentence}")
    return result.exit_code


def _lines(result: MigrateResult) -> Iterator[str]:
    migration = result.migration
    if result.dry_run:
        yield (
            f"{result.flow}: at its {migration.phase}; {result.left_records:,} records are left to copy, about "
            f"{result.left_bytes / 1e6:,.1f} MB; nothing was changed"
        )
        return
    if result.done:
        yield f"{result.flow}: done: {', '.join(result.done)}"
    copied = result.backfilled
    if copied.runs:
        yield (
            f"  backfilled: {copied.records:,} records, {copied.bytes / 1e6:,.1f} MB in {copied.runs} runs and "
            f"{copied.seconds:.1f} s"
        )
    if result.adopted:
        yield f"  adopted: {result.adopted:,} records, compared one by one"
    for line in result.removed:
        yield f"  removed {line}"
    if result.report is not None:
        yield f"  report: {result.report}"
    if result.waits_for is not None:
        yield f"{result.flow}: {result.waits_for}"
    elif migration.is_cut_over and not result.removed and not result.failures and Phase.CLEAN_UP not in result.done:
        yield f"{result.flow}: applications go on on the target; --clean-up removes what Twinlog keeps for itself"


def _asked(asked: argparse.Namespace) -> Asked:
    """What the options say, checked before anything is reached."""
    from twinlog.model.backfill import Priorities  # noqa: PLC0415 - keeps --help quick
    from twinlog.model.blackouts import Blackouts  # noqa: PLC0415 - as above
    from twinlog.operations.migrate import Asked  # noqa: PLC0415 - as above

    Blackouts.parse(asked.blackout or ())
    Priorities(asked.priority or ())
    return Asked(
        from_ms=asked.from_ms,
        from_offsets=dict(named_beginning(text) for text in asked.from_offset),
        priority=None if asked.priority is None else tuple(asked.priority),
        blackouts=None if asked.blackout is None else tuple(asked.blackout),
        throttle=asked.throttle,
        adopts=asked.adopt,
    )


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number of MB/s above 0, not {text!r}")
    return rate


def whoever() -> str:
    """Who approves, for the report."""
    return getpass.getuser()
