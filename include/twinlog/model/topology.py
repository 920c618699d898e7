"""An estate: its clusters and the flows between them.

Everything here is a value that was checked when it was read (`twinlog.intake.topology_file`); nothing reaches
out to a cluster, an environment variable or a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twinlog.errors import TopologyError
from twinlog.model.flow import Flow
from twinlog.model.kinds import Integer, Text, nearest
from twinlog.model.settings import setting

__all__ = ["Cluster", "Flow", "Topology"]

_CLUSTER = "Cluster"
_TOPOLOGY = "The file"


@dataclass(frozen=True)
class Cluster:
    """One Kafka cluster.

    `settings` holds Kafka client properties as they were written, also with `consumer.`, `producer.` or
    `admin.` in front, references included; secrets are there only as references.
    """

    alias: str
    bootstrap_servers: str = setting(
        "bootstrap.servers",
        "",
        Text(),
        "Brokers to ask first: `host:port`, several with commas between. Every cluster needs it.",
        section=_CLUSTER,
        mm2=True,
    )
    connection: str | None = setting(
        "connection",
        None,
        Text(),
        "The Airflow connection that holds the cluster's secrets; without Airflow, the variable `AIRFLOW_CONN_<ID>`.",
        section=_CLUSTER,
    )
    spark: str | None = setting(
        "spark", None, Text(), "The Spark beside this cluster, for flows to it.", section=_CLUSTER
    )
    queue: str | None = setting(
        "queue",
        None,
        Text(),
        "The Airflow queue of workers beside this cluster, for flows to it.",
        section=_CLUSTER,
    )
    pool: str | None = setting(
        "pool",
        None,
        Text(),
        "The Airflow pool of tasks that put load on this cluster, so that flows share it fairly. A task takes a slot "
        "of the target's pool, or else of the source's, or else of Airflow's own.",
        section=_CLUSTER,
    )
    ledger: str | None = setting(
        "ledger", None, Text(), "Where the ledger of flows to this cluster is.", section=_CLUSTER
    )
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Topology:
    """All clusters and flows of one file; flows are keyed by name, `nyc->lon`."""

    clusters: Mapping[str, Cluster] = field(hash=False)
    flows: Mapping[str, Flow] = field(hash=False)
    ledger: str = setting(
        "ledger",
        "./ledger",
        Text(),
        "Where ledgers are: any path that Spark and pyarrow both reach. A relative path is taken from the "
        "file's folder.",
        section=_TOPOLOGY,
    )
    spark: str | None = setting(
        "spark",
        None,
        Text(),
        "The Spark of flows that name none: an Airflow connection, a Connect URL or a master.",
        section=_TOPOLOGY,
    )
    version: int | None = setting(
        "version",
        None,
        Integer(0),
        "Raise it with a change that is to hold at every site: of two sites that describe a flow differently, the "
        "target lets the one with the higher version run it. Among equals, only the site that gave the one that holds "
        "may change it (a site's name is `TWINLOG_SITE`, or Airflow's base URL, or the host's).",
        section=_TOPOLOGY,
    )
    path: str = ""
    site: str = ""
    """The name of the site that reads it."""

    def flow(self, name: str) -> Flow:
        """The flow of that name; an error names the nearest spelling."""
        if name in self.flows:
            return self.flows[name]
        close = nearest(name, list(self.flows))
        hint = f'did you mean "{close}"?' if close else f"it has {', '.join(self.flows)}"
        raise TopologyError(f'{self.path or "the topology"}: no flow is called "{name}"; {hint}')

    def spark_for(self, flow: Flow) -> str | None:
        """The Spark that copies a flow: its own, or the one beside its target, or the estate's."""
        return flow.spark or self.clusters[flow.target].spark or self.spark

    def queue_for(self, flow: Flow) -> str | None:
        """The Airflow queue of a flow: its own, or the one beside its target."""
        return flow.queue or self.clusters[flow.target].queue

    def pool_for(self, flow: Flow) -> str | None:
        """The Airflow pool that a flow's tasks take a slot of: its target's, or else its source's."""
        return self.clusters[flow.target].pool or self.clusters[flow.source].pool

    def ledger_for(self, flow: Flow) -> str:
        """The ledger of a flow: its own, or the one beside its target, or the estate's."""
        return flow.ledger or self.clusters[flow.target].ledger or self.ledger
