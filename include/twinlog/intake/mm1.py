"""MirrorMaker 1 as a topology: its consumer's and its producer's properties, and its command line.

One flow, from the cluster the consumer names to the one the producer names. MirrorMaker 1 keeps topic names and
copies records only: no settings, no ACLs, no positions. The flow says so, since Twinlog would do these by default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from twinlog.errors import ImportSourceError
from twinlog.intake.connector_file import Connector, credentials_of, read_connectors
from twinlog.intake.imported import Imported, Written
from twinlog.intake.no_counterpart import MM1, reason_for
from twinlog.intake.topology_writer import Draft
from twinlog.model.clients import PROPERTIES

_COMMAND_LINE = "command line"
_INCLUDE = ("whitelist", "include")
_FOR_ALL_CLIENTS = re.compile(r"bootstrap\.servers|security\.protocol|(ssl|sasl)\..+")


def import_mm1(
    consumer_config: Path,
    producer_config: Path,
    options: Mapping[str, str],
    *,
    source: str = "source",
    target: str = "target",
) -> Imported:
    """`options` are kafka-mirror-maker.sh's own, by name without dashes: whitelist (or include), num.streams, ..."""
    if source == target:
        raise ImportSourceError(f"Source and target cannot both be called {source}; give them two aliases.")
    consumer, producer = (_properties(path) for path in (consumer_config, producer_config))
    draft = Draft(credentials_of([consumer, producer]))
    flow = f"{source}->{target}"
    # Kafka's consumer, and so MirrorMaker 1, starts at the end unless it is told otherwise.
    reset = "auto.offset.reset" in consumer.values
    draft.flows[flow] = {"naming": "identity", **({} if reset else {"topics.from": "latest"})}
    _take_options(draft, flow, options)
    _take_client(draft, consumer, source, flow, "consumer")
    _take_client(draft, producer, target, flow, "producer")
    draft.flows[flow] |= {
        "topics.exclude": ["__.*"],
        "replication.factor": "target",
        "sync.topic.configs.enabled": False,
        "sync.topic.acls.enabled": False,
    }
    draft.note(
        "Twinlog does not take over MirrorMaker 1's positions. With topics.from: latest it copies what is written "
        "after its first run: let that one begin before MirrorMaker 1 is stopped."
    )
    return draft.finish([f"Made by `twinlog topology import-mm1` from {consumer_config} and {producer_config}."])


def _properties(path: Path) -> Connector:
    (connector,) = read_connectors(path)
    if "bootstrap.servers" not in connector.values:
        raise ImportSourceError(
            f"{path} has no bootstrap.servers (an old consumer's zookeeper.connect does not do); add them, then import."
        )
    return connector


def _take_options(draft: Draft, flow: str, options: Mapping[str, str]) -> None:
    given = [name for name in _INCLUDE if options.get(name, "").strip()]
    if len(given) != 1:
        raise ImportSourceError("MirrorMaker 1 needs its topics: give its whitelist (later called include), once.")
    for name, value in options.items():
        written = Written(name, value, _COMMAND_LINE)
        if name in given:
            draft.flow_setting([flow], "topics", written, [_pattern(value)])
        elif name == "num.streams":
            draft.flow_setting([flow], "lanes", written)
        else:
            draft.leave_out(written, reason_for(name, MM1) or "neither MirrorMaker 1 nor Twinlog knows it")


def _pattern(whitelist: str) -> str:
    """MirrorMaker 1's one Java pattern, in which commas mean "or" and quotes around it mean nothing."""
    text = whitelist.strip().replace(",", "|").replace(" ", "")
    return re.sub(r"""^["']+|["']+$""", "", text)


def _take_client(draft: Draft, connector: Connector, alias: str, flow: str, role: str) -> None:
    side = "source" if role == "consumer" else "target"
    for key, written in connector.values.items():
        if key == "auto.offset.reset" and role == "consumer":
            draft.flow_setting([flow], "topics.from", written)
        elif _FOR_ALL_CLIENTS.fullmatch(key):
            draft.cluster_property([alias], key, written)
        elif key not in PROPERTIES and (reason := reason_for(key, MM1)) is not None:
            draft.leave_out(written, reason)
        else:
            draft.flow_property(flow, f"{side}.{role}.{key}", written)
    for written in connector.shadowed:
        draft.leave_out(written, "the key is written again further down, and the last one counts")
