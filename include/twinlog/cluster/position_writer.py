"""Writes positions anew without copying: what they say stays, and the target remembers it for longer.

It is done as copying is: open the lane, which fences whoever wrote there; read the flow's record, then the positions;
commit them in a transaction of the lane. So a position that a late writer commits meanwhile is either seen here or
refused there, and none ever goes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from twinlog.cluster.committed import fetch_positions
from twinlog.cluster.flow_store import FlowStore
from twinlog.cluster.raw import RawClient
from twinlog.cluster.transaction import TransactionalWriter
from twinlog.errors import FencedError
from twinlog.model.flow_state import Holder
from twinlog.model.lanes import lane_of, position_group, transactional_id
from twinlog.model.offsets import TopicPartition
from twinlog.model.positions import Position

POSITIONS_A_REQUEST = 2_000
"""A group's coordinator writes a request's positions as one batch, which must fit its log."""
TRANSACTION_TIMEOUT_MS = 60_000
RETRIES = 40


async def write_positions_anew(
    client: RawClient,
    store: FlowStore,
    *,
    flow: str,
    holder: Holder,
    lanes: int,
    partitions: Iterable[TopicPartition],
    forgotten: Mapping[TopicPartition, Position],
) -> dict[TopicPartition, Position]:
    """Write the positions of `partitions` anew, taking from `forgotten` those that are gone; answers all of them."""
    by_lane: dict[int, list[TopicPartition]] = {}
    for partition in partitions:
        by_lane.setdefault(lane_of(partition, lanes), []).append(partition)
    answers = await client.gather(
        _write_lane(client, store, flow=flow, holder=holder, lane=lane, partitions=members, forgotten=forgotten)
        for lane, members in by_lane.items()
    )
    return {partition: position for answer in answers for partition, position in answer.items()}


async def _write_lane(
    client: RawClient,
    store: FlowStore,
    *,
    flow: str,
    holder: Holder,
    lane: int,
    partitions: list[TopicPartition],
    forgotten: Mapping[TopicPartition, Position],
) -> dict[TopicPartition, Position]:
    writer = TransactionalWriter(
        client, transactional_id(flow, lane), timeout_ms=TRANSACTION_TIMEOUT_MS, retries=RETRIES
    )
    await writer.open()
    overtaken = (await store.read()).reason_to_stop(holder, flow)
    if overtaken is not None:
        raise FencedError(f"{overtaken}; nothing was copied")
    group = position_group(flow)
    remembered = await fetch_positions(client, group, partitions)
    known = {
        partition: position
        for partition in partitions
        if (position := remembered.get(partition) or forgotten.get(partition)) is not None
    }
    ordered = sorted(known)
    for first in range(0, len(ordered), POSITIONS_A_REQUEST):
        chosen = ordered[first : first + POSITIONS_A_REQUEST]
        await writer.commit_positions(group, {partition: known[partition] for partition in chosen})
    await writer.commit()
    return known
