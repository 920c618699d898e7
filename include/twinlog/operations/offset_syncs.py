"""Offset syncs after a run, for tools made for MirrorMaker 2: the last copied record of every partition that moved.

Twinlog itself translates by its ledger and never reads these, so nothing that goes wrong here fails a run.
"""

from __future__ import annotations

import pyarrow as pa  # noqa: TID253 - no DAG imports an operation at its top
import pyarrow.compute as pc  # noqa: TID253 - as above

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.plain_records import write_records
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import principal_of
from twinlog.errors import ClusterError
from twinlog.model.naming import offset_syncs_topic
from twinlog.model.offsets import TopicPartition
from twinlog.model.topology import Flow
from twinlog.operations.internal_topics import create_small_topic
from twinlog.wire.mirror_maker import OffsetSync

COLUMNS = ("source_topic", "partition", "source_start", "target_start", "copied_at_ms")
"""What a run's rows need to have, beside their count."""

_NOT_WRITTEN = "the run's offset syncs are not written; grant CREATE and WRITE, or set emit.offset-syncs.enabled: false"


def last_copied(rows: pa.Table) -> list[OffsetSync]:
    """For each partition in a run's rows of the ledger, its last copied record on both sides."""
    rows = rows.filter(pc.greater(rows.column("count"), 0)).combine_chunks()
    # By time first: a topic that was made anew during the run begins again at 0.
    rows = rows.sort_by([("copied_at_ms", "ascending"), ("source_start", "ascending")])
    place = rows.schema.get_field_index("source_topic")
    rows = rows.set_column(place, "source_topic", rows.column("source_topic").cast(pa.string()))
    latest = rows.group_by(["source_topic", "partition"], use_threads=False).aggregate(
        [(column, "last") for column in ("source_start", "target_start", "count")]
    )
    return [
        OffsetSync(
            TopicPartition(row["source_topic"], row["partition"]),
            row["source_start_last"] + row["count_last"] - 1,
            row["target_start_last"] + row["count_last"] - 1,
        )
        for row in latest.to_pylist()
    ]


def write_offset_syncs(flow: Flow, access: ClusterAccess, client: RawClient, rows: pa.Table) -> tuple[str, ...]:
    """Write those of a run's rows of the ledger to the cluster of offset-syncs.topic.location; what kept us from it."""
    if not flow.emit_offset_syncs_enabled or not (syncs := last_copied(rows)):
        return ()
    topic, principal = offset_syncs_topic(flow), principal_of(access.settings)
    replicas = flow.offset_syncs_topic_replication_factor
    pairs = [(sync.key(), sync.value()) for sync in syncs]
    try:
        client.run(create_small_topic(client, principal, topic, replicas, _NOT_WRITTEN))
        client.run(write_records(client, principal, TopicPartition(topic, 0), pairs, _NOT_WRITTEN))
    except ClusterError as refused:
        return (str(refused),)
    return ()
