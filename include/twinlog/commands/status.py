"""`twinlog status [FLOW]`: reaches both ends of each flow and says what is there."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from twinlog.commands import metrics
from twinlog.commands.arguments import seconds
from twinlog.commands.console import Console, table
from twinlog.commands.words import behind
from twinlog.model.objectives import Objective, Objectives

if TYPE_CHECKING:
    from twinlog.operations.status import FlowStatus, SideStatus, Status

_OBJECTIVES = ["FLOW", "RECOVERY POINT", "WANTED", "RECOVERY TIME", "WANTED"]


def add_to(verbs: Any, common: argparse.ArgumentParser) -> None:
    parser = verbs.add_parser("status", parents=[common], help="reach both clusters of each flow and say what is there")
    parser.add_argument("flow", metavar="FLOW", nargs="?", help="such as nyc->lon; all that are enabled if left out")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=15.0, help="how long to wait for a cluster (15)"
    )
    parser.add_argument("--groups", action="store_true", help="also whether each consumer group could fail over now")
    parser.add_argument("--offsets", action="store_true", help="also where each of them goes on, by partition")
    metrics.add_option(parser)
    parser.set_defaults(run=run)


def run(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.cluster.access import flow_access  # noqa: PLC0415 - brings the Kafka clients
    from twinlog.intake.topology_file import load  # noqa: PLC0415 - keeps --help quick
    from twinlog.operations.metrics import collect  # noqa: PLC0415 - as the first
    from twinlog.operations.status import status  # noqa: PLC0415 - as the first

    topology = load(asked.topology)
    wanted = None if asked.flow is None else [asked.flow]
    accesses = functools.partial(flow_access, topology)
    found = status(topology, accesses, wanted, asked.timeout, groups=asked.groups or asked.offsets)
    console.result(_lines(found, offsets=asked.offsets), found.to_json())
    for flow in found.flows:
        if flow.problem is not None:
            console.note(f"twinlog: {flow.flow}: {flow.problem}")
    for sentence in found.missed:
        console.note(f"twinlog: {sentence}")
    for message in sorted({side.error for side in found.sides if side.error is not None}):
        console.note(f"twinlog: {message}")
    if asked.metrics is not None:
        collected = collect(topology, accesses, found)
        metrics.write(asked, collected.samples)
        for problem in collected.problems:
            console.note(f"twinlog: {problem}")
    return found.exit_code


def _lines(found: Status, *, offsets: bool) -> Iterator[str]:
    if not found.flows:
        yield "no flow is enabled"
        return
    rows = [["FLOW", "STATE", "TO MIRROR", "BEHIND", "GROUPS READY", "HEARTBEAT", "LAST RUN", "SOURCE", "TARGET"]]
    rows += [
        [
            flow.flow,
            flow.state,
            _amount(flow.topics, flow.partitions),
            behind(flow.lag_records, flow.lag_seconds),
            _groups(flow),
            "none" if flow.heartbeat_age_s is None else f"{flow.heartbeat_age_s:,.1f} s ago",
            flow.last_run or "none",
            _side(flow.source),
            _side(flow.target),
        ]
        for flow in found.flows
    ]
    yield from table(rows)
    wanted = [flow for flow in found.flows if flow.objectives != Objectives()]
    if wanted:
        yield ""
        yield from table([_OBJECTIVES, *(_objectives_row(flow) for flow in wanted)])
    late = [(flow.flow, topic) for flow in found.flows for topic in flow.lag if topic.records != 0]
    if late:
        yield ""
        rows = [["FLOW", "TOPIC", "BEHIND"]]
        yield from table(rows + [[flow, topic.topic, behind(topic.records, topic.seconds)] for flow, topic in late])
    for flow in found.flows:
        if flow.groups:
            yield ""
            yield from _group_table(flow)
            if offsets:
                yield ""
                yield from _offset_table(flow)
    concerns = sorted({warning.message for flow in found.flows for warning in flow.preflight})
    if concerns:
        yield ""
        yield from concerns


def _objectives_row(flow: FlowStatus) -> list[str]:
    point, time = flow.objectives.point, flow.objectives.time
    return [flow.flow, _measured(point), _wanted(point), _measured(time), _wanted(time)]


def _measured(objective: Objective) -> str:
    if objective.measured_s is None:
        return "not measured"
    missed = ", MISSED" if objective.met is False else ""
    return f"{objective.measured_s:,.1f} s by the {objective.measured_by}{missed}"


def _wanted(objective: Objective) -> str:
    return "" if objective.wanted_s is None else f"{objective.wanted_s:,.0f} s"


def _groups(flow: FlowStatus) -> str:
    if flow.groups_ready is None or flow.groups_not_ready is None:
        return "unknown"
    counted = f"{flow.groups_ready:,} of {flow.groups_ready + flow.groups_not_ready:,}"
    return counted if flow.groups_age_s is None else f"{counted}, {flow.groups_age_s:,.0f} s ago"


def _group_table(flow: FlowStatus) -> list[str]:
    heading = [f"GROUP OF {flow.flow}, SEEN {flow.groups_as_of}", "READY", "PARTITIONS", "UNREAD", "NOT COPIED", "WHY"]
    return table(
        [heading]
        + [
            [
                group.group,
                "yes" if group.ready else "no",
                f"{group.partitions:,}",
                f"{group.unread:,}",
                behind(group.lost_records, group.lost_seconds),
                "; ".join(group.reasons),
            ]
            for group in flow.groups
        ]
    )


def _offset_table(flow: FlowStatus) -> list[str]:
    return table(
        [["GROUP", "PARTITION", "GOES ON AT", "HOW", "UNREAD", "NOT COPIED", "WHY"]]
        + [
            [
                group.group,
                f"{one.topic}-{one.partition}",
                "unknown" if one.target_offset is None else f"{one.target_topic}-{one.partition}@{one.target_offset}",
                one.how or "",
                "unknown" if one.unread is None else f"{one.unread:,}",
                behind(one.lost_records, one.lost_seconds),
                one.reason or "",
            ]
            for group in flow.groups
            for one in group.offsets
        ]
    )


def _side(side: SideStatus) -> str:
    if not side.reachable:
        return f"{side.cluster}: not reached"
    return f"{side.cluster}: {_count(side.brokers, 'broker')}, {_amount(side.topics, side.partitions)}"


def _amount(topics: int | None, partitions: int | None) -> str:
    return "unknown" if topics is None else f"{_count(topics, 'topic')}, {_count(partitions, 'partition')}"


def _count(number: int | None, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
