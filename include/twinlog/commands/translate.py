"""`twinlog translate FLOW TOPIC PARTITION OFFSET`: where a reader goes on, on the other side."""

from __future__ import annotations

import argparse
from typing import Any

from twinlog.commands.arguments import offset
from twinlog.commands.console import Console
from twinlog.commands.flow_context import FlowContext


def add_to(verbs: Any, common: argparse.ArgumentParser) -> None:
    parser = verbs.add_parser("translate", parents=[common], help="translate an offset to the other side, exactly")
    parser.add_argument("flow", metavar="FLOW", help="such as nyc->lon")
    parser.add_argument("topic", metavar="TOPIC", help="on the source; with --reverse, on the target")
    parser.add_argument("partition", metavar="PARTITION", type=offset)
    parser.add_argument("offset", metavar="OFFSET", type=offset)
    parser.add_argument("--reverse", action="store_true", help="from the target to the source")
    parser.set_defaults(run=run)


def run(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.model.offsets import TopicPartition  # noqa: PLC0415 - keeps --help quick
    from twinlog.operations.translate import translator  # noqa: PLC0415 - as above

    context = FlowContext(asked)
    translate = translator(context.flow, context.access("target"), context.ledger())
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
        },
    )
    return 0
