"""The report as a page that needs nothing but a browser: no script, no request, charts as inline SVG."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from html import escape

from twinlog.model.reconciliation import ALLOWED, Account, Difference, Kind, Verdict
from twinlog.model.topology import Flow, Topology
from twinlog.operations.reconcile_result import Reconciliation

LISTED = 500
"""Differences on the page; the table has all."""

_STYLE = """
:root { color-scheme: light dark; --good: #2e7d32; --bad: #c62828; --quiet: #78909c; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { border-left: .5rem solid var(--tone); padding-left: .75rem; font-size: 1.6rem; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #8884; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
code, pre { font: 12px/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; background: #8881; padding: .5rem; margin: .25rem 0; }
svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
.bad { color: var(--bad); } .quiet { color: var(--quiet); }
"""


def page(result: Reconciliation, topology: Topology, flow: Flow) -> str:
    """The whole page."""
    tone = "var(--good)" if result.verdict is Verdict.EQUAL else "var(--bad)"
    return "\n".join(
        [
            "<!doctype html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{escape(result.flow)}: {result.verdict}</title>',
            f"<style>{_STYLE}</style></head><body style='--tone: {tone}'>",
            *_answer(result),
            *_differences(result, topology, flow),
            *_evidence(result),
            *_ranges(result),
            "</body></html>",
        ]
    )


def _answer(result: Reconciliation) -> Iterator[str]:
    yield f"<h1>{escape(result.sentence)}</h1>"
    when = datetime.fromtimestamp(result.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    yield (
        f"<p>Looked at {escape(result.scope)}, at {when}, in {result.seconds:,.1f} s: {result.bytes_read / 1e6:,.1f} "
        f"MB of both logs read, of which {result.bytes_crossed / 1e6:,.1f} MB crossed from the source; "
        f"{result.opened:,} records opened, the others told by the digests of their batches.</p>"
    )
    for note in result.notes:
        yield f'<p class="quiet">{escape(note)}</p>'


def _differences(result: Reconciliation, topology: Topology, flow: Flow) -> Iterator[str]:
    if not result.differences:
        return
    yield "<h2>What differs</h2>"
    yield _bars({kind: (count, "var(--bad)") for kind, count in sorted(result.kinds.items())})
    yield (
        "<table><tr><th>Kind</th><th>Topic</th><th class=number>Partition</th><th class=number>Source offset</th>"
        "<th class=number>Target offset</th><th class=number>Count</th><th>What, and how to look at it</th></tr>"
    )
    for one in result.differences[:LISTED]:
        commands = "\n".join(commands_for(one, topology, flow))
        look = f"<pre>{escape(commands)}</pre>" if commands else ""
        yield (
            f"<tr><td class=bad>{escape(one.kind.value)}</td><td>{escape(one.topic or '')}</td>"
            f"{_number(one.partition)}{_number(one.source_offset)}{_number(one.target_offset)}{_number(one.count)}"
            f"<td>{escape(one.detail)}{look}</td></tr>"
        )
    yield "</table>"
    command = f"twinlog repair {shlex.quote(flow.name)} --dry-run"
    yield f"<p>What can be done about it, and what that would change: <code>{escape(command)}</code></p>"
    if len(result.differences) > LISTED:
        yield f"<p>{len(result.differences) - LISTED:,} more are in the table of differences beside this page.</p>"


def commands_for(one: Difference, topology: Topology, flow: Flow) -> Iterator[str]:
    """How a person sees the records for himself."""
    if one.topic is None or one.partition is None:
        return
    from twinlog.intake.extensions import naming_of  # noqa: PLC0415 - only a page with differences needs it

    name = shlex.quote(flow.name)
    sides = (
        (flow.source, one.topic, one.source_offset),
        (flow.target, naming_of(flow).target_name(one.topic), one.target_offset),
    )
    for alias, topic, offset in sides:
        if offset is not None:
            servers = shlex.quote(topology.clusters[alias].bootstrap_servers)
            yield (
                f"kafka-console-consumer.sh --bootstrap-server {servers} --topic {shlex.quote(topic)} "
                f"--partition {one.partition} --offset {offset} --max-messages {min(one.count, 10)} "
                "--isolation-level read_committed --property print.key=true --property print.headers=true "
                "--property print.timestamp=true --property print.offset=true"
            )
    if one.source_offset is not None:
        yield f"twinlog translate {name} {shlex.quote(one.topic)} {one.partition} {one.source_offset}"
    if one.kind in (Kind.HOLE, Kind.LEDGER):
        yield f"twinlog ledger rebuild {name}"


def _evidence(result: Reconciliation) -> Iterator[str]:
    if result.tally:
        yield "<h2>Records by what was found of them</h2>"
        yield _bars(
            {
                kind.value: (count, _tone(kind))
                for kind, count in sorted(result.tally.items(), key=lambda item: -item[1])
                if count
            }
        )
    if result.account.offsets:
        yield f"<h2>Every source offset, accounted for</h2><p>{escape(_account(result.account))}</p>"
    if result.gaps:
        yield "<h2>Source offsets without a record on the target</h2>"
        yield _bars({kind: (count, "var(--quiet)") for kind, count in sorted(result.gaps.items())})
    if result.aborted_on_target:
        yield (
            f"<p>{result.aborted_on_target:,} offsets of the target hold records of attempts that were rolled back: "
            "readers with isolation.level=read_committed do not see them.</p>"
        )


def _account(account: Account) -> str:
    parts = [
        f"{account.records:,} records that were copied",
        f"{account.gaps:,} offsets without a record on the target",
        f"{account.dropped:,} that the source has dropped and the ledger with it",
        f"{account.holes:,} of which the ledger says nothing",
    ]
    twice = f" - {account.twice:,} that it accounts for twice" if account.twice else ""
    return f"{account.offsets:,} offsets up to the positions = {' + '.join(parts)}{twice}"


def _ranges(result: Reconciliation) -> Iterator[str]:
    if not result.proven:
        return
    topics: dict[str, list[int]] = {}
    for one in result.proven:
        sums = topics.setdefault(one.topic, [0, 0, 0, 0])
        for place, value in enumerate((1, one.records, one.opened, not one.equal)):
            sums[place] += value
    yield "<h2>What was looked at</h2>"
    yield (
        "<table><tr><th>Topic</th><th class=number>Ranges</th><th class=number>Records</th>"
        "<th class=number>Opened</th><th class=number>Ranges that differ</th></tr>"
    )
    for topic, sums in sorted(topics.items()):
        yield f"<tr><td>{escape(topic)}</td>{''.join(_number(value) for value in sums)}</tr>"
    yield "</table>"


def _bars(values: Mapping[str, tuple[int, str]]) -> str:
    """Bars that are compared by their square roots, so that three among millions can be seen; each says its number."""
    largest = max((count for count, _ in values.values()), default=1) ** 0.5 or 1.0
    rows: list[str] = []
    for name, (count, tone) in values.items():
        top, width = 24 * len(rows), max(2.0, 420 * count**0.5 / largest)
        rows.append(
            f'<text x="130" y="{17 + top}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="140" y="{4 + top}" width="{width:.1f}" height="18" fill="{tone}"/>'
            f'<text x="{148 + width:.1f}" y="{17 + top}">{count:,}</text>'
        )
    height = 24 * len(rows) + 4
    return f'<svg role="img" width="700" height="{height}" viewBox="0 0 700 {height}">{"".join(rows)}</svg>'


def _tone(kind: Kind) -> str:
    if kind is Kind.EQUAL:
        return "var(--good)"
    return "var(--quiet)" if kind in ALLOWED else "var(--bad)"


def _number(value: int | None) -> str:
    return f"<td class=number>{'' if value is None else format(value, ',')}</td>"
