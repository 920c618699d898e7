"""`twinlog translate FLOW TOPIC PARTITION OFFSET`, or `FLOW --group G`: where a reader goes on, on the other side."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from twinlog.commands.arguments import moment, offset
from twinlog.commands.console import Console, table
from twinlog.commands.flow_context import FlowContext
from twinlog.commands.words import behind
from twinlog.errors import ConfigurationError

if TYPE_CHECKING:
    from twinlog.operations.group_plan import GroupPlan


def add_to(verbs: Any, common: argparse.ArgumentParser) -> None:
    parser = verbs.add_parser(
        "translate", parents=[common], help="translate an offset, or a group's positions, to the other side, exactly"
    )
    parser.add_argument("flow", metavar="FLOW", help="such as nyc->lon")
    parser.add_argument("topic", metavar="TOPIC", nargs="?", help="on the source; with --reverse, on the target")
    parser.add_argument("partition", metavar="PARTITION", nargs="?", type=offset)
    parser.add_argument("offset", metavar="OFFSET", nargs="?", type=offset)
    parser.add_argument("--reverse", action="store_true", help="from the target to the source")
    parser.add_argument("--group", metavar="G", help="all positions of a group, also where the source is gone")
    parser.add_argument(
        "--at", metavar="TIME", type=moment, help="with --group: at this time (2026-01-31T12:00:00Z, or milliseconds)"
    )
    parser.set_defaults(run=run)


def run(asked: argparse.Namespace, console: Console) -> int:
    given = [asked.topic, asked.partition, asked.offset]
    if asked.group is not None and not asked.reverse and given == [None] * 3:
        return _group(asked, console)
    if asked.group is not None or asked.at is not None or None in given:
        raise ConfigurationError(
            "expected either TOPIC PARTITION OFFSET, with or without --reverse, or --group, with or without --at"
        )
    return _offset(asked, console)


def _group(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.operations.group_plan import GroupPlanning  # noqa: PLC0415 - keeps --help quick

    context = FlowContext(asked)
    ends = context.access("source"), context.access("target")
    found = GroupPlanning(context.topology, context.flow, *ends, context.ledger()).plan(asked.group, asked.at)
    console.result(_lines(found), found.to_json())
    for sentence in found.notes:
        console.note(f"twinlog: {sentence}")
    return 0


def _lines(found: GroupPlan) -> Iterator[str]:
    if found.plan:
        columns = ("topic", "partition", "offset", "how", "unread")
        rows = [[column.upper() for column in columns]]
        yield from table(rows + [[str(row[column]) for column in columns] for row in found.plan])
    for row in found.left_out:
        where = "" if row["topic"] is None else f" {row['topic']}-{row['partition']}"
        by = "" if row["behind"] is None else f", by {row['behind']:,} offsets"
        yield f"left out:{where} {row['reason']}{by}"
    yield f"not copied: {behind(found.lost_records, found.lost_seconds)}"


def _offset(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.intake.extensions import naming_of  # noqa: PLC0415 - as above
    from twinlog.model.offsets import TopicPartition  # noqa: PLC0415 - keeps --help quick
    from twinlog.operations.translate import translator_of  # noqa: PLC0415 - as above

    context = FlowContext(asked)
    topic = naming_of(context.flow).source_name(asked.topic) if asked.reverse else asked.topic
    translate = translator_of(
        context.topology,
        context.flow,
        context.access("target"),
        context.ledger(),
        topic or asked.topic,
        reverse=asked.reverse,
    )
    partition = TopicPartition(asked.topic, asked.partition)
    answer = (translate.reverse if asked.reverse else translate.forward)(partition, asked.offset)
    asked_side = {"topic": asked.topic, "partition": asked.partition, "offset": asked.offset}
    given_side = (
        None
        if answer.offset is None or answer.given is None
        else {"topic": answer.given.topic, "partition": answer.given.partition, "offset": answer.offset}
    )
    source, target = (given_side, asked_side) if asked.reverse else (asked_side, given_side)
    console.result(
        [answer.message],
        {
            "flow": context.flow.name,
            "source": source,
            "target": target,
            "how": answer.how,
            "reason": answer.reason,
            "behind": answer.behind,
            "read_again": answer.read_again,
        },
    )
    return 0
