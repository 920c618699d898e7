"""Removes entries from a flow's journal, by records of their keys without a value.

It has a transactional id of its own and touches no lane, so a run goes on beside it; of two who remove at once the
later fences the earlier. Each round of requests is one short transaction, so readers of the journal are held back for
no longer than that, and what was committed stays removed if the rest is cut short.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import zip_longest

from twinlog.cluster.produce_request import Pieces
from twinlog.cluster.raw import RawClient
from twinlog.cluster.transaction import TransactionalWriter
from twinlog.errors import FencedError, TwinlogError
from twinlog.ledger.trim import Removable
from twinlog.model.lanes import trim_transactional_id
from twinlog.model.offsets import TopicPartition
from twinlog.wire.outgoing import OutgoingBatch
from twinlog.wire.own_records import build_batches
from twinlog.wire.source import SourcePartition

TRANSACTION_TIMEOUT_MS = 30_000
RETRIES = 40
MAX_BATCH_BYTES = 512 * 1024


async def remove_entries(client: RawClient, flow: str, topic: str, going: Removable) -> int:
    """Remove the entries with these keys from the journal `topic`; how many there were."""
    if not going:
        return 0
    writer = TransactionalWriter(
        client, trim_transactional_id(flow), timeout_ms=TRANSACTION_TIMEOUT_MS, retries=RETRIES
    )
    await writer.open()
    batches = {TopicPartition(topic, number): _batches(client, topic, number, keys) for number, keys in going.items()}
    for together in zip_longest(*batches.values()):
        await _write(
            client,
            writer,
            {partition: batch for partition, batch in zip(batches, together, strict=True) if batch is not None},
        )
    return sum(map(len, going.values()))


def _batches(client: RawClient, topic: str, number: int, keys: Sequence[bytes]) -> list[OutgoingBatch]:
    now_ms = time.time_ns() // 1_000_000
    where = SourcePartition(client.alias, topic, number)
    return build_batches([(key, None) for key in keys], now_ms, max_batch_bytes=MAX_BATCH_BYTES, target=where)


async def _write(
    client: RawClient, writer: TransactionalWriter, batches: Mapping[TopicPartition, OutgoingBatch]
) -> None:
    """One transaction: a request to each broker that leads some of the partitions."""
    try:
        await _send(client, writer, batches)
    except FencedError:
        raise  # another has the id, and has ended what we had open
    except TwinlogError:
        # Left open, it would hold up whoever reads the journal until the broker's patience ends.
        await writer.abort()
        raise
    await writer.commit()


async def _send(
    client: RawClient, writer: TransactionalWriter, batches: Mapping[TopicPartition, OutgoingBatch]
) -> None:
    view = await client.metadata({partition.topic for partition in batches})
    await writer.add_partitions(batches)
    requests: dict[int | None, dict[TopicPartition, Pieces]] = {}
    for partition, batch in batches.items():
        requests.setdefault(view.leader(partition), {})[partition] = writer.stamp(partition, batch)
    await client.gather(writer.produce(leader, stamped) for leader, stamped in requests.items())
