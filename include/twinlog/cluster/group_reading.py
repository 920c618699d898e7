"""The groups of a cluster together with what they have committed, all of it as the same leaders have it.

A leader that has just taken over tells of offsets, too, only what its followers have asked for by then, which can be
less than the leader before it had told. So both are read anew where a leader has changed between them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from twinlog.cluster.group_coordinators import account_of, led_by
from twinlog.cluster.group_offsets import Offsets, fetch_offsets
from twinlog.cluster.groups import PATIENCE_S, Group, GroupList, group_list
from twinlog.cluster.raw import RawClient


async def read_groups(client: RawClient, chooses: Callable[[Group], bool]) -> tuple[GroupList, Offsets]:
    """Every group that we may describe, and the committed offsets of those that are chosen."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        listing = await group_list(client)
        offsets = await fetch_offsets(client, sorted(group.name for group in listing.groups.values() if chooses(group)))
        if await _led_as_before(client, listing):
            return listing, offsets
        if time.monotonic() > deadline:
            raise client.failures.unreachable("its brokers take over each other's groups again and again")


async def _led_as_before(client: RawClient, listing: GroupList) -> bool:
    accounts = await client.gather(account_of(client, node_id) for node_id in listing.led)
    return all(
        led_by(node_id, account).items() >= led.items()
        for (node_id, led), account in zip(listing.led.items(), accounts, strict=True)
    )
