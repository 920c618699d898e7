"""Failovers of a flow between test clusters, and sources that are gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from support.mirroring import Twins
from support.silent import closed_port
from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.secrets import resolve
from twinlog.model.flow_state import FlowRecord
from twinlog.model.takeover import Request, Strategy
from twinlog.operations.failover import Failover
from twinlog.operations.takeover_result import TakeoverResult

TRANSLATED = Request()


def failing_over(flow: Twins, source_servers: str | None = None, *, source_within_s: float = 2.0) -> Failover:
    """Of a flow whose source is gone: nothing listens there, or what `source_servers` names."""
    settings = resolve({"bootstrap.servers": source_servers or closed_port()}, environ={})
    source = ClusterAccess(flow.flow.source, settings)
    target = flow.ends().target
    return Failover(flow.topology, flow.flow, source, target, flow.ledger, source_within_s=source_within_s)


def fail_over(flow: Twins, request: Request = TRANSLATED, source_servers: str | None = None) -> TakeoverResult:
    failover = failing_over(flow, source_servers)
    return failover.apply(failover.plan(request))


def by_strategy(strategy: Strategy, **settings: Any) -> Request:
    return Request(strategy, **settings)


def record_of(flow: Twins) -> FlowRecord:
    return flow.record()


def topology_file(flow: Twins, folder: Path, source_servers: str | None = None, **settings: Any) -> Path:
    """The flow as people write it."""
    servers = {flow.flow.source: source_servers or flow.source_servers, flow.flow.target: flow.target_servers}
    file = folder / "topology.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "version": 1,
                "clusters": {alias: {"bootstrap.servers": address} for alias, address in servers.items()},
                "ledger": flow.topology.ledger,
                "flows": {
                    flow.flow.name: {
                        "topics": list(flow.flow.topics),
                        "groups": list(flow.flow.groups),
                        "naming": flow.flow.naming,
                        "checkpoints.topic.replication.factor": 1,
                        "lanes": 2,
                        **settings,
                    }
                },
            }
        )
    )
    return file
