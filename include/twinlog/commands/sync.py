"""`twinlog sync FLOW`: what the target lacks of the source's topics, settings and permissions, shown and put right."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from twinlog.commands.console import Console
from twinlog.commands.flow_context import FlowContext
from twinlog.errors import FlowStateError

if TYPE_CHECKING:
    from twinlog.model.sync_plan import Change
    from twinlog.operations.sync_result import SyncResult


def add_to(verbs: Any, common: argparse.ArgumentParser) -> None:
    parser = verbs.add_parser(
        "sync", parents=[common], help="bring topics, partitions, settings and ACLs of the target in step"
    )
    parser.add_argument("flow", metavar="FLOW", help="such as nyc->lon")
    parser.add_argument("--dry-run", action="store_true", help="only show the differences; exit 1 where there are any")
    parser.add_argument(
        "--yes",
        action="store_true",
        help="delete topics that are gone from the source now, not after the grace period, and permissions that a "
        "source cluster built anew does not have",
    )
    parser.set_defaults(run=run)


def run(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.operations.migration_evidence import reason_to_stay_away  # noqa: PLC0415 - brings the Kafka clients
    from twinlog.operations.sync import Sync  # noqa: PLC0415 - as above

    context = FlowContext(asked)
    moved = reason_to_stay_away(context.flow, context.ledger())
    if moved is not None:
        raise FlowStateError(moved)
    sync = Sync(context.topology, context.flow, context.access("source"), context.access("target"))
    result = sync.run(dry_run=asked.dry_run, approved=asked.yes)
    console.result(_lines(result), result.to_json())
    for sentence in result.warnings:
        console.note(f"twinlog: {sentence}")
    return result.exit_code


def _lines(result: SyncResult) -> Iterator[str]:
    if result.skipped is not None:
        yield result.skipped
        return
    changes = result.changes
    count = "1 difference" if len(changes) == 1 else f"{len(changes):,} differences"
    if not changes:
        yield f"{result.flow}: nothing to change"
    elif result.dry_run:
        yield f"{result.flow}: {count}, nothing was changed"
    else:
        yield f"{result.flow}: {count}, " + ("put right" if result.applied else "not all of them put right")
    for change in changes:
        yield f"  {_line(change)}"
    for deletion in result.plan.waiting:
        due = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(deletion.due_at_ms / 1000))
        yield (
            f"  delete topic {deletion.name}: waits until {due}, as {deletion.source} is gone from the source; "
            "--yes deletes it now"
        )
    absent = [user.user for user in result.scram_users if user.on_target is False]
    if result.scram_users:
        yield f"  SCRAM users on the source: {len(result.scram_users)}, of which {len(absent)} not on the target"
    if result.quotas:
        unlike = sum(1 for quota in result.quotas if quota.value != quota.on_target)
        yield f"  client quotas on the source: {len(result.quotas)}, of which {unlike} not so on the target"
    for warning in result.preflight:
        yield f"  {warning.message}"


def _line(change: Change) -> str:
    values = f"{_value(change.before)} -> {_value(change.after)}"
    note = f" ({change.note})" if change.note else ""
    return f"{change.kind} {change.resource}: {change.name} {values}{note}"


def _value(value: str | None) -> str:
    return "none" if value is None else value
