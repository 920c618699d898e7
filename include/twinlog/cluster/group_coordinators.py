"""Which part of a cluster's groups a broker keeps, and whether it has loaded it.

Groups are spread over the partitions of the offsets topic, and who leads a partition keeps its groups. A broker that
has only just been given a partition does not know its groups yet; asked for a group of it by name it says so, and asked
for a list of all it says nothing. Nor does it count those at the end of the partition until its followers have asked
for them, although the leader before it did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import kafka.errors as kafka_errors
from kafka.protocol.consumer import OffsetFetchRequest

from twinlog.cluster.group_offsets import LAST_VERSION_BY_NAME, NOT_YET, fetch_from
from twinlog.cluster.log_offsets import OffsetAt, list_offsets
from twinlog.cluster.metadata import ClusterMetadata
from twinlog.cluster.raw import RawClient
from twinlog.model.offsets import TopicPartition

OFFSETS_TOPIC = "__consumer_offsets"
PROBE = "twinlog.probe."
"""How the groups begin that are asked for to hear whether a broker knows its part; nobody has to have made them."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What one broker answered for."""

    partitions: frozenset[int] = frozenset()
    denied: frozenset[int] = frozenset()
    """Those of whose groups we may not ask, so that it can't be told."""


def partition_of(group: str, partitions: int) -> int:
    """The partition of the offsets topic that holds a group: by Java's hash of its name, a signed number of 32 bits."""
    value = 0
    encoded = group.encode("utf-16-be")
    for at in range(0, len(encoded), 2):
        value = (31 * value + int.from_bytes(encoded[at : at + 2])) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >= 1 << 31 else value
    # Of the least there is no positive; Kafka takes it for 0.
    return 0 if signed == -(1 << 31) else abs(signed) % partitions


def probes(partitions: int) -> dict[int, str]:
    """The name of a group in each partition."""
    found: dict[int, str] = {}
    number = 0
    while len(found) < partitions:
        name = f"{PROBE}{number}"
        found.setdefault(partition_of(name, partitions), name)
        number += 1
    return found


async def account_of(client: RawClient, node_id: int) -> ClusterMetadata:
    """The offsets topic by a broker's own account.

    A broker knows that it leads a partition no longer before it forgets the groups, so of itself it tells the truth.
    """
    return await client.metadata([OFFSETS_TOPIC], node_id=node_id)


def led_by(node_id: int, account: ClusterMetadata) -> dict[int, int | None]:
    """The partitions that a broker leads, each with its leader epoch."""
    return {one.number: one.leader_epoch for one in account.topics[OFFSETS_TOPIC].partitions if one.leader == node_id}


async def complete(client: RawClient, account: ClusterMetadata, partitions: Iterable[int]) -> frozenset[int]:
    """Those of the partitions whose end is known to their new leader; until then a broker does not tell it."""
    asked = [TopicPartition(OFFSETS_TOPIC, number) for number in partitions]
    return frozenset(one.partition for one in (await list_offsets(client, account, asked, OffsetAt.LOG_END)).offsets)


async def loaded(client: RawClient, node_id: int, partitions: Collection[int], names: Mapping[int, str]) -> Loaded:
    """Which of the partitions a broker answers for; `names` are groups in them."""
    if not partitions:
        return Loaded()
    version = min(client.api_version(OffsetFetchRequest), LAST_VERSION_BY_NAME)
    asked = {names[number]: number for number in partitions}
    known: set[int] = set()
    denied: set[int] = set()
    for name, code, _ in await fetch_from(client, node_id, list(asked), version):
        error = kafka_errors.for_code(code)
        if error is kafka_errors.NoError:
            known.add(asked[name])
        elif issubclass(error, kafka_errors.AuthorizationError):
            denied.add(asked[name])
        elif not issubclass(error, NOT_YET):
            raise client.failures.of_raw(error(f"the groups of {OFFSETS_TOPIC}-{asked[name]}"))
    return Loaded(frozenset(known), frozenset(denied))
