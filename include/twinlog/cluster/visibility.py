"""Changes of topics, settings and ACLs are answered by the controller before every broker shows them: wait for that.

A broker learns of changes in the order in which they were made, so the last one of each kind stands for those before.
What we may change and not look at is not waited for: no time would show it.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from uuid import UUID

from twinlog.cluster.acl_admin import read_acls
from twinlog.cluster.metadata import Topic
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import portions, refusal_named
from twinlog.cluster.topic_settings import read_settings
from twinlog.errors import ClusterUnreachableError
from twinlog.model.acls import Acl
from twinlog.model.twin_settings import SettingChange

WITHIN_S = 60.0
"""Without anything more coming to be seen: a broker shows nothing new while it makes the logs of a thousand topics."""
FIRST_PAUSE_S = 0.02
MOST_PAUSE_S = 1.0
TOPICS_A_REQUEST = 500

_LOG = logging.getLogger(__name__)


async def topics_visible(client: RawClient, partitions: Mapping[str, int]) -> bool:
    """Whether each topic came to show so many partitions, all with a leader.

    Asked for in the order of creation, some at a time: while a broker is busy with thousands, looking at all of them
    again and again would keep it from them.
    """

    async def shown(wanted: Mapping[str, int], node_id: int) -> bool:
        found = (await client.metadata(wanted, node_id=node_id)).topics
        return all(name in found and _shows(found[name], count) for name, count in wanted.items())

    for portion in portions(partitions.items(), lambda _: 1, TOPICS_A_REQUEST):
        if not await _on_every_broker(client, functools.partial(shown, dict(portion))):
            return False
    return True


async def topics_gone(client: RawClient, topics: Mapping[str, UUID]) -> bool:
    """Whether none of these very topics is shown any more; one that was made anew under a name is another."""

    async def shown(node_id: int) -> bool:
        found = (await client.metadata(topics, node_id=node_id)).topics
        return all(found[name].topic_id != topic_id for name, topic_id in topics.items() if name in found)

    return not topics or await _on_every_broker(client, shown)


async def setting_visible(client: RawClient, change: SettingChange) -> bool:
    """Whether the topic came to show the setting as it was changed."""

    async def shown(node_id: int) -> bool:
        read = await read_settings(client, [change.topic], node_id=node_id)
        if change.topic in read.refused and read.refused[change.topic].not_allowed:
            return True
        found = read.topics.get(change.topic)
        return found is not None and found.overrides.get(change.name) == change.after

    return await _on_every_broker(client, shown)


async def acls_visible(client: RawClient, there: Collection[Acl], gone: Collection[Acl]) -> bool:
    """Whether the cluster came to show these ACLs, and no longer shows those that are gone."""

    async def shown(node_id: int) -> bool:
        found = (await read_acls(client, node_id)).acls
        return found.issuperset(there) and found.isdisjoint(gone)

    return await _on_every_broker(client, shown)


def _shows(topic: Topic, partitions: int) -> bool:
    if topic.error is not None and refusal_named(topic.error).not_allowed:
        return True
    return sum(1 for partition in topic.partitions if partition.leader is not None) >= partitions


async def _on_every_broker(client: RawClient, shown: Callable[[int], Awaitable[bool]]) -> bool:
    for broker in client.brokers():
        try:
            if not await _comes_true(client, functools.partial(shown, broker.node_id)):
                return False
        except ClusterUnreachableError as away:
            # Nobody sees anything old there; when it is back it has learnt of everything.
            _LOG.info("broker %d of %s was not asked for what has changed: %s", broker.node_id, client.alias, away)
    return True


async def _comes_true(client: RawClient, condition: Callable[[], Awaitable[bool]]) -> bool:
    deadline = time.monotonic() + WITHIN_S
    pause_s = FIRST_PAUSE_S
    while not await condition():
        if time.monotonic() > deadline:
            return False
        await client.pause(pause_s)
        pause_s = min(2 * pause_s, MOST_PAUSE_S)
    return True
