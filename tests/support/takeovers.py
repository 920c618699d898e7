"""Failovers of a flow between test clusters, and sources that are gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from local.kafka import KafkaClusters
from support.mirroring import Twins, twins
from support.silent import closed_port
from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.copy_order import carry_out_here
from twinlog.cluster.secrets import resolve
from twinlog.model.takeover import Request
from twinlog.operations.failover import Failover
from twinlog.operations.flow_reach import FlowReach
from twinlog.operations.switchover import Opposite, Prove, Switchover, SwitchoverResult
from twinlog.operations.switchover_proof import prove_with
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


def same_names(clusters: KafkaClusters, folder: Path, mark: str, **settings: Any) -> Twins:
    """A flow whose topics have one name on both sides, so that they are promoted."""
    source, target = (clusters[name].bootstrap_servers for name in ("nyc", "lon"))
    return twins(
        source,
        target,
        folder,
        (f".*-{mark}",),
        groups=(f".*-{mark}",),
        **{
            "naming": "identity",
            "canary_enabled": False,
            "checkpoints_topic_replication_factor": 1,
            "transaction_bytes": 20_000,
            **settings,
        },
    )


def switching(flow: Twins, within_s: float = 60.0, back: Twins | None = None) -> Switchover:
    opposite = None if back is None else Opposite(back.flow, back.ends(), back.ledger)
    return Switchover(flow.topology, flow.flow, flow.ends(), flow.ledger, opposite=opposite, within_s=within_s)


def by_reconciliation(flow: Twins) -> Prove:
    return prove_with(FlowReach(flow.topology, flow.flow))


def switch(flow: Twins, back: Twins | None = None, **settings: Any) -> SwitchoverResult:
    switchover = switching(flow, back=back)
    return switchover.apply(switchover.plan(Request()), carry_out_here, by_reconciliation(flow), **settings)


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
