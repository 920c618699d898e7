"""Topics full of records as applications write them: JSON orders, in the large batches of a busy producer.

Always: the same case holds the same records, on every machine and in every run. A record is made once of a pool and
told apart by its key; the pool is much larger than a compression window of the codecs, so repeating it does not flatter
them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import NamedTuple

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

POOL_BYTES = 32 << 20
BATCH_BYTES = 128 << 10
_AT_ONCE = 5_000
_SEED = 11
_WORDS = """
    shipped pending returned express standard invoice customer address street london berlin paris amount currency
    discount voucher payment credit transfer warehouse shelf parcel carrier tracking note gift wrapped fragile
""".split()  # noqa: SIM905 - a list of words reads better as words


class Clusters(NamedTuple):
    """The bootstrap servers of both sides; each cluster has one broker."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Load:
    """One topic of the benchmark."""

    record_bytes: int
    codec: str
    partitions: int
    records: int

    @property
    def topic(self) -> str:
        return f"bench-{self.record_bytes}-{self.codec}-{self.partitions}"

    @property
    def raw_bytes(self) -> int:
        return self.records * self.record_bytes


def admin_of(servers: str) -> AdminClient:
    """A client for asking and arranging that prints nothing of its own."""
    return AdminClient({"bootstrap.servers": servers, "log_level": 0})


def create_topic(servers: str, topic: str, partitions: int) -> None:
    admin = admin_of(servers)
    for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        future.result()


def delete_topics(servers: str, *patterns: str) -> None:
    """Delete the topics whose names contain one of the patterns, so that cases do not fill the disk."""
    admin = admin_of(servers)
    names = [name for name in admin.list_topics(timeout=10).topics if any(pattern in name for pattern in patterns)]
    for future in admin.delete_topics(names).values() if names else ():
        future.result()


def fill(servers: str, load: Load) -> None:
    """Create the load's topic and write its records."""
    create_topic(servers, load.topic, load.partitions)
    write(servers, load)
    found = record_count(admin_of(servers), load.topic, load.partitions)
    if found != load.records:
        raise RuntimeError(f"{load.topic} was to hold {load.records} records, and holds {found}")


def write(servers: str, load: Load) -> None:
    """Write the load's records, evenly over the partitions."""
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "compression.type": load.codec,
            "batch.size": BATCH_BYTES,
            "linger.ms": 200,
            "queue.buffering.max.kbytes": 256 << 10,
            "queue.buffering.max.messages": 10_000_000,
            "enable.idempotence": True,
        }
    )
    pool = values(load.record_bytes)
    records = (
        {"value": pool[number % len(pool)], "key": b"%012d" % number, "partition": number % load.partitions}
        for number in range(load.records)
    )
    while part := list(islice(records, _AT_ONCE)):
        _write(producer, load.topic, part)
    left = producer.flush(120)
    if left:
        raise RuntimeError(f"{left} records of {load.topic} were not taken by {servers}")


def record_count(admin: AdminClient, topic: str, partitions: int) -> int:
    """By the log ends: of a topic that nothing was removed from, and that no transaction wrote to."""
    asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}
    return sum(future.result().offset for future in admin.list_offsets(asked).values())


def values(record_bytes: int) -> list[bytes]:
    """Different values of this size; together some tens of MB."""
    random = Random(_SEED)
    text = _text(random)
    return [_value(random, text, record_bytes) for _ in range(min(POOL_BYTES // record_bytes, 100_000))]


def _value(random: Random, text: Iterator[str], size: int) -> bytes:
    order: dict[str, object] = {
        "id": f"{random.getrandbits(64):016x}",
        "amount": random.randrange(100, 100_000) / 100,
        "state": random.choice(_WORDS),
        "note": "",
    }
    room = size - len(json.dumps(order))
    order["note"] = " ".join(islice(text, max(1, room // 4)))[: max(0, room)]
    return json.dumps(order).encode()[:size].ljust(size, b" ")


def _text(random: Random) -> Iterator[str]:
    """Words with numbers among them: compresses two- to fourfold, as such records do."""
    while True:
        yield from random.choices(_WORDS, k=3)
        yield f"{random.randrange(100_000)}"


def _write(producer: Producer, topic: str, records: list[dict[str, object]]) -> None:
    for record in records:
        while True:
            try:
                producer.produce(topic, **record)
                break
            except BufferError:
                producer.poll(0.1)
    producer.poll(0)
