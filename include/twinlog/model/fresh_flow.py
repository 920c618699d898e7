"""The small flow by which a repair copies topics again, beside the flow that it repairs:

    nyc->lon                     orders  ------->  nyc.orders
    nyc-repair-1f0c9a2e->lon     orders  ------->  twinlog.nyc.orders.repair-1f0c9a2e.internal

The same clusters, client properties and ways of copying; a journal, positions, lanes and ledger of its own. It brings
records only. What it makes are internal topics, which no flow mirrors any further.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from twinlog.model.flow import Flow
from twinlog.model.topology import Topology


def fresh_flow(topology: Topology, flow: Flow, plan_id: str, topics: Sequence[str]) -> tuple[Topology, Flow]:
    """The small flow of a repair, and a topology of it alone."""
    mark = f"repair-{plan_id.rpartition('-')[2]}"
    alias = f"{flow.source}-{mark}"
    small = replace(
        flow,
        source=alias,
        topics=tuple(re.escape(topic) for topic in topics),
        topics_exclude=(),
        topic_filter=None,
        topics_from="earliest",
        groups=(),
        group_filter=None,
        naming="custom",
        naming_format=f"twinlog.{flow.source}.${{topic}}.{mark}.internal",
        naming_policy=None,
        schemas_topic=None,
        refresh_topics_enabled=True,
        sync_topic_configs_enabled=False,
        sync_topic_acls_enabled=False,
        sync_topic_deletes=False,
        sync_group_offsets_enabled=False,
        emit_heartbeats_enabled=False,
        heartbeats_replication_enabled=False,
        emit_offset_syncs_enabled=False,
        emit_checkpoints_enabled=False,
        canary_enabled=False,
        reconcile_source_spark=None,
        enabled=True,
    )
    source = replace(topology.clusters[flow.source], alias=alias)
    return replace(topology, clusters={**topology.clusters, alias: source}, flows={small.name: small}), small
