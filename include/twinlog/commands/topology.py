"""`twinlog topology ...`: checks a topology, and makes one from another mirror's files."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinlog.commands.arguments import seconds
from twinlog.commands.console import Console
from twinlog.errors import ConfigurationError, TopologyError

if TYPE_CHECKING:
    from twinlog.intake.imported import Imported
    from twinlog.model.estate import Finding
    from twinlog.model.topology import Topology
    from twinlog.operations.view import View

_MM1_OPTIONS = (
    "whitelist",
    "include",
    "num.streams",
    "offset.commit.interval.ms",
    "abort.on.send.failure",
    "message.handler",
    "message.handler.args",
    "consumer.rebalance.listener",
    "rebalance.listener.args",
    "new.consumer",
)


def add_to(verbs: Any, common: argparse.ArgumentParser) -> None:
    """Add the verb and its own verbs to the command line."""
    parser = verbs.add_parser("topology", help="check a topology, or make one from another mirror's files")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    check = actions.add_parser(
        "check", parents=[common], help="say everything that is wrong or doubtful in the topology"
    )
    check.set_defaults(run=run_check)

    view = actions.add_parser(
        "view", parents=[common], help="ask the clusters which of them reach which, by their heartbeats and topics"
    )
    view.add_argument("--timeout", metavar="SECONDS", type=seconds, default=15.0, help="how long to wait (15)")
    view.set_defaults(run=run_view)

    mm2 = actions.add_parser("import-mm2", parents=[common], help="make a topology from MirrorMaker 2's files")
    mm2.add_argument("files", metavar="FILE", type=Path, nargs="+", help="mm2.properties, or connector configurations")
    _add_output(mm2)
    mm2.set_defaults(run=run_import_mm2)

    replicator = actions.add_parser(
        "import-replicator", parents=[common], help="make a topology from Confluent Replicator's connectors"
    )
    replicator.add_argument("files", metavar="FILE", type=Path, nargs="+", help="connector configurations")
    _add_aliases(replicator)
    _add_output(replicator)
    replicator.set_defaults(run=run_import_replicator)

    mm1 = actions.add_parser(
        "import-mm1", parents=[common], help="make a topology from what MirrorMaker 1 was started with"
    )
    mm1.add_argument(
        "--consumer.config", "--consumer-config", dest="consumer", metavar="FILE", type=Path, required=True
    )
    mm1.add_argument(
        "--producer.config", "--producer-config", dest="producer", metavar="FILE", type=Path, required=True
    )
    for option in _MM1_OPTIONS:
        spellings = dict.fromkeys((f"--{option}", f"--{option.replace('.', '-')}"))
        mm1.add_argument(*spellings, dest=option, metavar="VALUE", help=f"MirrorMaker 1's --{option}")
    _add_aliases(mm1)
    _add_output(mm1)
    mm1.set_defaults(run=run_import_mm1)


def run_check(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.intake.topology_file import load  # noqa: PLC0415 - keeps --help quick
    from twinlog.model.estate import Severity, check, planned_settings  # noqa: PLC0415 - as above

    try:
        topology = load(asked.topology)
    except TopologyError as error:
        if not console.as_json:
            raise
        console.result([], {"topology": str(asked.topology), "valid": False, "problems": str(error).splitlines()})
        return error.exit_code
    findings = check(topology)
    valid = all(finding.severity is not Severity.ERROR for finding in findings)
    console.result(_described(topology), _as_json(topology, findings, valid))
    if not console.as_json:
        for finding in findings:
            console.note(f"{finding.severity}: {finding.flow}: {finding.message}. {finding.remedy}")
        for name, flows in planned_settings(topology).items():
            console.note(f"note: {', '.join(flows)}: {name} is read and checked, but nothing acts on it yet")
    return 0 if valid else ConfigurationError.exit_code


def run_view(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.cluster.access import flow_access  # noqa: PLC0415 - brings the Kafka clients
    from twinlog.intake.topology_file import load  # noqa: PLC0415 - keeps --help quick
    from twinlog.operations.view import view  # noqa: PLC0415 - as the first

    topology = load(asked.topology)
    found = view(topology, functools.partial(flow_access, topology), asked.timeout)
    console.result(_viewed(found), found.to_json())
    for cluster in found.clusters:
        for sentence in filter(None, (cluster.error, cluster.hidden)):
            console.note(f"twinlog: {sentence}")
    return found.exit_code


def run_import_mm2(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.intake.mm2 import import_mm2  # noqa: PLC0415 - keeps --help quick

    return _deliver(import_mm2(*asked.files), asked.output, console)


def run_import_replicator(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.intake.replicator import import_replicator  # noqa: PLC0415 - keeps --help quick

    imported = import_replicator(*asked.files, source=asked.source, target=asked.target)
    return _deliver(imported, asked.output, console)


def run_import_mm1(asked: argparse.Namespace, console: Console) -> int:
    from twinlog.intake.mm1 import import_mm1  # noqa: PLC0415 - keeps --help quick

    given = {option: getattr(asked, option) for option in _MM1_OPTIONS}
    options = {option: value for option, value in given.items() if value is not None}
    imported = import_mm1(asked.consumer, asked.producer, options, source=asked.source, target=asked.target)
    return _deliver(imported, asked.output, console)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", metavar="FILE", type=Path, help="write the topology there, if there is no such file"
    )


def _add_aliases(parser: argparse.ArgumentParser) -> None:
    for side in ("source", "target"):
        parser.add_argument(f"--{side}", metavar="ALIAS", default=side, help=f"what to call the {side} cluster")


def _deliver(imported: Imported, output: Path | None, console: Console) -> int:
    if output is not None:
        _write_new(output, imported.topology_yaml)
    value = {
        "topology": imported.topology_yaml,
        "output": None if output is None else str(output),
        "left_out": [asdict(item) for item in imported.left_out],
        "variables": list(imported.variables),
        "notes": list(imported.notes),
    }
    console.result([imported.topology_yaml.rstrip("\n")] if output is None else [f"{output}: written"], value)
    if not console.as_json:
        for line in _remarks(imported):
            console.note(line)
    return 0


def _remarks(imported: Imported) -> Iterator[str]:
    for item in imported.left_out:
        yield f"left out: {item.place}: {item.key} = {item.value_masked}: {item.reason}"
    for note in imported.notes:
        yield f"note: {note}"


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigurationError(f"{path} exists already and is not overwritten; choose another --output") from None
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from None


def _described(topology: Topology) -> Iterator[str]:
    yield f"{topology.path}: {len(topology.clusters)} clusters, {len(topology.flows)} flows"
    for flow in topology.flows.values():
        off = "" if flow.enabled else ", not enabled"
        yield f"  {flow.name}: {flow.naming} names, route {flow.route}, schedule {flow.schedule}{off}"


def _viewed(found: View) -> Iterator[str]:
    for cluster in found.clusters:
        if cluster.error is not None:
            yield f"{cluster.cluster}: not reached"
            continue
        yield f"{cluster.cluster}: {len(cluster.remote_topics)} topics mirrored in"
        for upstream in cluster.upstream:
            yield f"  from {upstream.cluster}, {upstream.hops} hops: {' <- '.join((cluster.cluster, *upstream.path))}"


def _as_json(topology: Topology, findings: list[Finding], valid: bool) -> dict[str, Any]:
    shown = ("source", "target", "enabled", "naming", "route", "schedule")
    return {
        "topology": topology.path,
        "valid": valid,
        "clusters": list(topology.clusters),
        "flows": [
            {"flow": flow.name} | {name: getattr(flow, name) for name in shown} for flow in topology.flows.values()
        ],
        "findings": [asdict(finding) for finding in findings],
    }
