"""`twinlog migrate FLOW`: a cluster moved for good, from its settings to the clean-up, going on wherever it stopped."""

from __future__ import annotations

import argparse
import functools
import getpass
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from twinlog.commands import approving
from twinlog.commands.arguments import moment
from twinlog.commands.console import Console
from twinlog.commands.flow_context import FlowContext
from twinlog.commands.progress_display import show_on
from twinlog.errors import ConfigurationError

if TYPE_CHECKING:
    from twinlog.operations.migrate import Asked, MigrateResult, Migrating


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
    approving.add_options(parser)
    parser.set_defaults(run=run)


def run(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.operations.copy_on_spark import copy_on_spark  # noqa: PLC0415 - keeps --help quick
    from twinlog.operations.migrate import Migrating  # noqa: PLC0415 - as above
    from twinlog.operations.spark_session import address, most_tasks, spark_session  # noqa: PLC0415 - as above

    wanted = _asked(asked)
    context = FlowContext(asked)
    flow = context.flow
    migrating = Migrating(
        context.topology, flow, context.ends(), context.ledger(), show=show_on(console), tell=console.note
    )
    if asked.dry_run:
        return _tell(console, migrating.look(wanted))
    if asked.clean_up:
        return _tell(console, _cleaned_up(asked, console, migrating, flow.name))
    with spark_session(address(context.topology.spark_for(flow))) as spark:
        execute = functools.partial(copy_on_spark, spark)
        return _tell(console, migrating.run(wanted, execute, tasks=most_tasks(spark, flow.lanes)))


def _cleaned_up(asked: argparse.Namespace, console: Console, migrating: Migrating, flow: str) -> MigrateResult:
    approving.demand_somebody(asked, f"What Twinlog keeps of {flow} is only removed with somebody's yes.")
    if not approving.approved(asked, console, f"Remove journal, state and positions of {flow} for good?"):
        raise ConfigurationError(f"{flow}: nothing was removed")
    return migrating.clean_up()


def _tell(console: Console, result: MigrateResult) -> int:
    console.result(_lines(result), result.to_json())
    for sentence in (*result.notes, *result.failures):
        console.note(f"twinlog: {sentence}")
    return result.exit_code


def _lines(result: MigrateResult) -> Iterator[str]:
    migration = result.migration
    if result.dry_run:
        yield f"{result.flow}: at its {migration.phase}; {result.left_records:,} records are left to copy, about "
        f"{result.left_bytes / 1e6:,.1f} MB; nothing was changed"
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


def _asked(asked: argparse.Namespace) -> Asked:
    """What the options say, checked before anything is reached."""
    from twinlog.model.backfill import Priorities  # noqa: PLC0415 - keeps --help quick
    from twinlog.model.blackouts import Blackouts  # noqa: PLC0415 - as above
    from twinlog.operations.migrate import Asked  # noqa: PLC0415 - as above

    Blackouts.parse(asked.blackout or ())
    Priorities(asked.priority or ())
    return Asked(
        from_ms=asked.from_ms,
        from_offsets=dict(_begin(text) for text in asked.from_offset),
        priority=None if asked.priority is None else tuple(asked.priority),
        blackouts=None if asked.blackout is None else tuple(asked.blackout),
        throttle=asked.throttle,
        adopts=asked.adopt,
    )


def _begin(text: str) -> Any:
    from twinlog.model.offsets import TopicPartition  # noqa: PLC0415 - keeps --help quick

    topic, _, place = text.partition(":")
    number, _, offset = place.partition(":")
    if not (topic and number.isdigit() and offset.isdigit()):
        raise ConfigurationError(f'--from-offset: expected TOPIC:PARTITION:OFFSET, such as orders:0:1200, not "{text}"')
    return TopicPartition(topic, int(number)), int(offset)


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
