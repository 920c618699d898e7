"""Changes of topics, settings and ACLs are answered by the controller before every broker shows them: wait for that.

A broker learns of changes in the order in which they were made, so the last one of each kind stands for those before.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from twinlog.cluster.acl_admin import read_acls
from twinlog.cluster.raw import RawClient
from twinlog.cluster.topic_settings import read_settings
from twinlog.model.acls import Acl
from twinlog.model.twin_settings import SettingChange

WITHIN_S = 15.0
"""Without anything more coming to be seen."""
PAUSE_S = 0.02


async def topics_visible(client: RawClient, partitions: Mapping[str, int]) -> bool:
    """Whether each topic came to show so many partitions, all with a leader; thousands may take a broker minutes."""
    waiting = dict(partitions)
    deadline = time.monotonic() + WITHIN_S
    while waiting:
        found = (await client.metadata(waiting)).topics
        led = {
            name: sum(1 for partition in topic.partitions if partition.leader is not None)
            for name, topic in found.items()
        }
        still = {name: count for name, count in waiting.items() if led.get(name, 0) < count}
        if len(still) < len(waiting):
            deadline = time.monotonic() + WITHIN_S
        elif time.monotonic() > deadline:
            return False
        else:
            await client.pause(PAUSE_S)
        waiting = still
    return True


async def setting_visible(client: RawClient, change: SettingChange) -> bool:
    """Whether the topic came to show the setting as it was changed."""
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        found = (await read_settings(client, [change.topic])).topics.get(change.topic)
        if found is not None and found.overrides.get(change.name) == change.after:
            return True
        await client.pause(PAUSE_S)
    return False


async def acls_visible(client: RawClient, there: Collection[Acl], gone: Collection[Acl]) -> bool:
    """Whether the cluster came to show these ACLs, and no longer shows those that are gone."""
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        found = (await read_acls(client)).acls
        if found.issuperset(there) and found.isdisjoint(gone):
            return True
        await client.pause(PAUSE_S)
    return False
