"""Confluent Replicator's connectors as a topology.

A connector is one flow: `src.kafka.*` is its source cluster, `dest.kafka.*` its target. Replicator keeps names
unless `topic.rename.format` says otherwise, takes topics by name (`topic.whitelist`) and by pattern
(`topic.regex`), and copies neither ACLs nor Kafka's internal topics; the flow says all of this outright, since
Twinlog's own defaults differ. Clusters are told apart by their bootstrap servers.
"""

from __future__ import annotations

import re
from pathlib import Path

from twinlog.errors import ImportSourceError
from twinlog.intake.connector_file import Connector, credentials_of, read_connectors
from twinlog.intake.imported import Imported, Written
from twinlog.intake.no_counterpart import REPLICATOR, reason_for
from twinlog.intake.topology_writer import Draft
from twinlog.model.kinds import split_list

_CLASS = "ReplicatorSourceConnector"
_UNKNOWN = "neither Replicator nor Twinlog knows it"
_INTERNAL = "__.*"
_SETTINGS = {
    "dest.topic.replication.factor": "replication.factor",
    "topic.config.sync": "sync.topic.configs.enabled",
    "tasks.max": "lanes",
}
_MILLISECONDS = {
    "topic.poll.interval.ms": "refresh.topics.interval.seconds",
    "topic.config.sync.interval.ms": "sync.topic.configs.interval.seconds",
}
# Settings whose other value is something that Twinlog does not do.
_ONLY = {
    "topic.auto.create": ("true", "Twinlog creates what is missing; it cannot be told not to"),
    "topic.preserve.partitions": ("true", "Twinlog keeps partition counts; a copy could not be exact otherwise"),
}
_CLIENTS = {
    "src.consumer.": "source.consumer.",
    "producer.override.": "target.producer.",
    "admin.override.": "target.admin.",
}


def import_replicator(*paths: Path, source: str = "source", target: str = "target") -> Imported:
    """The connectors of all files as one topology; further clusters are called `source2`, `target2`, and so on."""
    connectors = [connector for path in paths for connector in read_connectors(path)]
    draft = Draft(credentials_of(connectors))
    aliases: dict[frozenset[str], str] = {}
    for connector in connectors:
        _check_class(connector)
        ends = [
            _alias(aliases, _bootstrap(connector, "src"), source),
            _alias(aliases, _bootstrap(connector, "dest"), target),
        ]
        if ends[0] == ends[1]:
            raise ImportSourceError(f"{connector.file}: source and destination are the same cluster.")
        flow = f"{ends[0]}->{ends[1]}"
        if flow in draft.flows:
            raise ImportSourceError(
                f"{connector.file} is a second connector from {ends[0]} to {ends[1]}; a topology has one flow a "
                f"direction, so bring their topics together first, or import them into two topologies."
            )
        _ConnectorImport(draft, connector, *ends).run()
    draft.note("Replicator copies no ACLs, so sync.topic.acls.enabled is off.")
    names = ", ".join(str(path) for path in paths)
    return draft.finish([f"Made by `twinlog topology import-replicator` from {names}."])


def _check_class(connector: Connector) -> None:
    written = connector.values.get("connector.class")
    # Replicator's own executable takes files without a class.
    if written is not None and written.value.strip().rsplit(".", 1)[-1] != _CLASS:
        raise ImportSourceError(f"{written.place}: connector.class must be Replicator's, {_CLASS}.")


def _bootstrap(connector: Connector, side: str) -> str:
    key = f"{side}.kafka.bootstrap.servers"
    if key not in connector.values or not connector.values[key].value.strip():
        raise ImportSourceError(f"{connector.file} has no {key}; add it, then import.")
    return connector.values[key].value


def _alias(aliases: dict[frozenset[str], str], bootstrap: str, wanted: str) -> str:
    servers = frozenset(split_list(bootstrap))
    if servers not in aliases:
        taken = set(aliases.values())
        names = (wanted if number == 1 else f"{wanted}{number}" for number in range(1, len(taken) + 2))
        aliases[servers] = next(name for name in names if name not in taken)
    return aliases[servers]


class _ConnectorImport:
    """One connector's keys, one after the other."""

    def __init__(self, draft: Draft, connector: Connector, source: str, target: str) -> None:
        self.draft = draft
        self.connector = connector
        self.source = source
        self.target = target
        self.flow = f"{source}->{target}"

    def run(self) -> None:
        values = self.connector.values
        if "topic.rename.format" not in values:
            self._settings()["naming"] = "identity"
        self._topics()
        for key, written in values.items():
            self._take(key, written)
        for written in self.connector.shadowed:
            self.draft.leave_out(written, "the key is written again further down, and the last one counts")
        flow = self._settings()
        flow.setdefault("replication.factor", "source")
        flow["sync.topic.acls.enabled"] = False

    def _settings(self) -> dict[str, object]:
        return self.draft.flows.setdefault(self.flow, {})

    def _topics(self) -> None:
        values = self.connector.values
        names = split_list(values["topic.whitelist"].value) if "topic.whitelist" in values else []
        excluded = split_list(values["topic.blacklist"].value) if "topic.blacklist" in values else []
        patterns = [re.escape(name) for name in names]
        regex = values.get("topic.regex")
        if regex is not None and regex.value.strip():
            patterns.append(regex.value.strip())
        if not patterns:
            raise ImportSourceError(f"{self.connector.file} names no topics: neither topic.whitelist nor topic.regex.")
        first = next(values[key] for key in ("topic.whitelist", "topic.regex") if key in values)
        self.draft.flow_setting([self.flow], "topics", first, patterns)
        for key in ("topic.whitelist", "topic.regex"):
            if key in values and values[key] is not first:
                self.draft.take(values[key], "flows", self.flow, "topics")
        exclude = [re.escape(name) for name in excluded] + [_INTERNAL]
        if "topic.blacklist" in values:
            self.draft.flow_setting([self.flow], "topics.exclude", values["topic.blacklist"], exclude)
        else:
            self._settings()["topics.exclude"] = exclude

    def _take(self, key: str, written: Written) -> None:
        draft, flow = self.draft, [self.flow]
        if key in ("topic.whitelist", "topic.regex", "topic.blacklist"):
            return
        if key == "topic.rename.format":
            self._take_naming(written)
        elif key == "offset.translator.tasks.max":
            draft.flow_setting(flow, "sync.group.offsets.enabled", written, _truth(written.value.strip() != "0"))
        elif key == "provenance.header.enable" and written.value.strip().lower() == "true":
            draft.leave_out(
                written,
                "the journal prevents loops without headers; if other replicators share the topics, use "
                "route: records with provenance: headers",
            )
        elif key in _ONLY and written.value.strip().lower() != _ONLY[key][0]:
            draft.leave_out(written, _ONLY[key][1])
        elif key in _SETTINGS:
            self._take_setting(key, written)
        elif key in _MILLISECONDS:
            draft.flow_setting(flow, _MILLISECONDS[key], written, _seconds(written.value))
        elif (reason := reason_for(key, REPLICATOR)) is not None:
            draft.leave_out(written, reason)
        else:
            self._take_client(key, written)

    def _take_setting(self, key: str, written: Written) -> None:
        # Replicator says 0 where it means the source's own number.
        as_source = key == "dest.topic.replication.factor" and written.value.strip() == "0"
        self.draft.flow_setting([self.flow], _SETTINGS[key], written, "source" if as_source else None)

    def _take_naming(self, written: Written) -> None:
        draft, flow, text = self.draft, self.flow, written.value.strip()
        if text == "${topic}":
            draft.flow_setting([flow], "naming", written, "identity")
        elif text == f"{self.source}.${{topic}}":
            draft.flow_setting([flow], "naming", written, "prefixed")
        else:
            self._settings()["naming"] = "custom"
            draft.flow_setting([flow], "naming.format", written)
            if "naming.format" not in self._settings():
                raise ImportSourceError(
                    f"{written.place}: topic.rename.format {text!r} cannot be a name with ${{topic}} in it."
                )

    def _take_client(self, key: str, written: Written) -> None:
        for prefix, alias in (("src.kafka.", self.source), ("dest.kafka.", self.target)):
            if key.startswith(prefix):
                self.draft.cluster_property([alias], key.removeprefix(prefix), written)
                return
        for prefix, ours in _CLIENTS.items():
            if key.startswith(prefix):
                self.draft.flow_property(self.flow, ours + key.removeprefix(prefix), written)
                return
        self.draft.leave_out(written, _UNKNOWN)


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _seconds(milliseconds: str) -> str:
    """Whole seconds, at least one; what is no number stays, and is refused as one."""
    text = milliseconds.strip()
    return str(max(1, round(int(text) / 1000))) if text.isascii() and text.isdigit() else text
