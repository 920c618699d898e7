"""Reads a topology file: YAML to `twinlog.model.topology`.

A file is either right, or refused with everything that is wrong in it: one line a problem, in the file's
order, each `file:line: key: what is wrong; did you mean "x"?`. No value of a secret is ever part of a
message.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

from twinlog.errors import SettingError, TopologyError
from twinlog.intake import located_yaml
from twinlog.intake.cluster_reader import read_cluster, resolved
from twinlog.intake.flow_reader import Given, read_flow, read_settings
from twinlog.intake.located_yaml import Entry, Scalar, kind_name
from twinlog.intake.problems import Problems
from twinlog.model.kinds import Integer, nearest
from twinlog.model.loops import conflicts
from twinlog.model.settings import settings_of
from twinlog.model.topology import Cluster, Flow, Topology

SITE_VARIABLE = "TWINLOG_SITE"

_OWN = settings_of(Topology)
_KEYS = ("clusters", "flows", "defaults", *_OWN)


def load(
    path: str | os.PathLike[str],
    environ: Mapping[str, str] = os.environ,
    *,
    content: str | os.PathLike[str] | None = None,
) -> Topology:
    """The topology that a file describes; a TopologyError names all that is wrong with it.

    `content` is a copy of the file to read in its place: relative places and messages remain those of `path`.
    """
    file = Path(path)
    problems = Problems(str(path), environ)
    try:
        root = located_yaml.read(Path(content or path), problems.found)
    except OSError as error:
        raise TopologyError(f"{path}: cannot be read: {error.strerror}") from error
    except located_yaml.YamlProblemError as error:
        raise TopologyError(f"{path}:{error.problem.line}: {error.problem.text}") from error
    if root is None:
        raise TopologyError(f"{path}:1: the file is empty; it needs clusters and flows")
    if not isinstance(root, located_yaml.Mapping):
        raise TopologyError(f"{path}:{root.line}: expected clusters and flows, not {kind_name(root)}")
    topology = _Reader(problems, file, environ.get(SITE_VARIABLE) or socket.gethostname()).topology(root)
    problems.raise_if_any()
    return topology


class _Reader:
    """Goes through one file once; what it makes is of use only if no problem was found."""

    def __init__(self, problems: Problems, file: Path, site: str) -> None:
        self._problems = problems
        self._file = file
        self._site = site

    def topology(self, root: located_yaml.Mapping) -> Topology:
        sections = {entry.key: entry for entry in root.entries}
        for entry in root.entries:
            if entry.key not in _KEYS:
                close = nearest(entry.key, _KEYS)
                hint = f'; did you mean "{close}"?' if close else f"; the file has {', '.join(_KEYS)}"
                self._problems.add(entry.line, f"{entry.key}: unknown key{hint}")
        clusters = self._clusters(sections.get("clusters"))
        defaults = Given()
        if "defaults" in sections:
            defaults = read_settings("defaults", sections["defaults"].value, self._problems)
        flows = self._flows(sections.get("flows"), defaults, clusters)
        ledger = self._text(sections.get("ledger")) or str(_OWN["ledger"].default)
        return Topology(
            clusters=clusters,
            flows=flows,
            ledger=self._place(ledger),
            spark=self._text(sections.get("spark")),
            version=self._version(sections.get("version")),
            path=str(self._file),
            site=self._site,
        )

    def _clusters(self, section: Entry | None) -> dict[str, Cluster]:
        found = self._entries("clusters", section, "alias: {bootstrap.servers: host:port}")
        return {entry.key: read_cluster(entry, self._problems, self._place) for entry in found}

    def _flows(self, section: Entry | None, defaults: Given, clusters: Mapping[str, Cluster]) -> dict[str, Flow]:
        flows: dict[str, Flow] = {}
        lines: dict[str, int] = {}
        for entry in self._entries("flows", section, "source->target: {topics: [...]}"):
            flow = read_flow(entry, defaults, clusters, self._problems, self._place)
            if flow is not None:
                flows[flow.name] = flow
                lines[flow.name] = entry.line
        # Where flows are wrong by themselves, what they would be wrong in together is noise.
        if not self._problems.found:
            for conflict in conflicts(list(flows.values())):
                self._problems.add(lines[conflict.flow], f"{conflict.flow}: {conflict.problem}")
        return flows

    def _entries(self, key: str, section: Entry | None, example: str) -> tuple[Entry, ...]:
        if section is None:
            self._problems.add(1, f"{key}: missing; write {key}: and below it {example}")
            return ()
        if not isinstance(section.value, located_yaml.Mapping):
            written = kind_name(section.value)
            self._problems.add(section.line, f"{key}: expected {example}, not {written}")
            return ()
        if not section.value.entries:
            self._problems.add(section.line, f"{key}: there is none; write {example}")
        return section.value.entries

    def _text(self, entry: Entry | None) -> str | None:
        if entry is None:
            return None
        if not isinstance(entry.value, Scalar) or not entry.value.text:
            self._problems.add(entry.line, f"{entry.key}: expected one value, not {kind_name(entry.value)}")
            return None
        return resolved(entry.key, entry.value.text, entry.value.line, self._problems)

    def _version(self, entry: Entry | None) -> int | None:
        text = self._text(entry)
        if entry is None or text is None:
            return None
        try:
            return Integer(0).parse(text)
        except SettingError as error:
            self._problems.add(entry.line, f"version: {error}")
            return None

    def _place(self, text: str) -> str:
        """A path as seen from the file's folder; a URL (`s3a://...`) stays as it is."""
        return text if "://" in text else str((self._file.parent / text).resolve())
