"""Records written to one partition outside any transaction, acknowledged by every in-sync replica.

For compacted topics only: a batch whose acknowledgement was lost is sent again, and a record that is there twice says
nothing new under its key.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from kafka import errors as kafka_errors

from twinlog.cluster.produce_request import Pieces, ProduceBatches
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import Refusal, demand, refusal
from twinlog.errors import ClusterUnreachableError
from twinlog.model.offsets import TopicPartition
from twinlog.wire.own_records import build_batches
from twinlog.wire.restamp import stamp_plain
from twinlog.wire.source import SourcePartition

MAX_BATCH_BYTES = 512 * 1024
ACKNOWLEDGED_WITHIN_MS = 10_000
PATIENCE_S = 10.0
PAUSE_S = 0.05


async def write_records(
    client: RawClient,
    principal: str,
    partition: TopicPartition,
    pairs: Iterable[tuple[bytes, bytes | None]],
    consequence: str,
) -> None:
    """Write keys and values in order, as few batches as they fit in; `consequence` ends the sentence of a refusal."""
    target = SourcePartition(client.alias, partition.topic, partition.partition)
    for batch in build_batches(pairs, int(time.time() * 1000), max_batch_bytes=MAX_BATCH_BYTES, target=target):
        refused = await _write(client, partition, stamp_plain(batch))
        if refused is not None:
            demand(client.alias, principal, "WRITE", {f"topic {partition.topic}": refused}, consequence)


async def _write(client: RawClient, partition: TopicPartition, batch: Pieces) -> Refusal | None:
    """Send one batch until it is acknowledged, or until what keeps it from that is no matter of time any more."""
    patience_ends = time.monotonic() + PATIENCE_S
    while True:
        try:
            error_code, message = await _send(client, partition, batch)
        except ClusterUnreachableError:
            if time.monotonic() > patience_ends:
                raise
        else:
            passing = issubclass(kafka_errors.for_code(error_code), kafka_errors.RetriableError)
            if not passing or time.monotonic() > patience_ends:
                return refusal(error_code, message)
        await client.pause(PAUSE_S)


async def _send(client: RawClient, partition: TopicPartition, batch: Pieces) -> tuple[int, str | None]:
    """What the partition's leader, wherever it is now, answers: an error code, 0 where the batch was taken."""
    metadata = await client.metadata([partition.topic])
    topic, leader = metadata.topics.get(partition.topic), metadata.leader(partition)
    if leader is None:
        named = topic.error if topic is not None and topic.error is not None else "LeaderNotAvailableError"
        return getattr(kafka_errors, named).errno, None
    response = await client.request(ProduceBatches(None, ACKNOWLEDGED_WITHIN_MS, {partition: batch}), leader)
    (result,) = response.responses[0].partition_responses
    return result.error_code, result.error_message
