"""Stops every earlier writer of a flow's lanes.

Fencing is momentary: a writer that opens its lane *afterwards* is not stopped by it, but by the flow's record, which it
reads then. So whoever fences writes the record first.
"""

from __future__ import annotations

from collections.abc import Iterable

from twinlog.cluster.raw import RawClient
from twinlog.cluster.transaction import TransactionalWriter
from twinlog.model.lanes import transactional_id

TRANSACTION_TIMEOUT_MS = 30_000
RETRIES = 40


async def fence_lanes(client: RawClient, flow: str, lanes: int) -> None:
    """Fence lanes 0 to `lanes` - 1 of `flow`; what they had open is rolled back when this returns."""
    await fence(client, (transactional_id(flow, lane) for lane in range(lanes)))


async def fence(client: RawClient, names: Iterable[str]) -> None:
    """Fence these transactional ids, all at once; what they had open is rolled back when this returns."""
    await client.gather(_fence(client, name) for name in names)


async def _fence(client: RawClient, name: str) -> None:
    await TransactionalWriter(client, name, timeout_ms=TRANSACTION_TIMEOUT_MS, retries=RETRIES).open()
