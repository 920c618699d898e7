"""What a plain consumer sees of a topic."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition


class Seen(NamedTuple):
    """A record as a plain consumer sees it, less its offset."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: tuple[int, int]

    @classmethod
    def of(cls, message: Message) -> Seen:
        return cls(message.key(), message.value(), tuple(message.headers() or ()), message.timestamp())


def reader(servers: str, isolation: str = "read_committed") -> Consumer:
    """A consumer that says where a partition ends, of a group of its own that commits nothing."""
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"reader-{uuid.uuid4().hex}",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            # A broker holds back the answer that there is nothing more for so long; half a second by default.
            "fetch.wait.max.ms": 20,
            "log_level": 0,
        }
    )


def numbers_of(consumer: Consumer, topic: str) -> list[int]:
    """The topic's partitions."""
    return sorted(consumer.list_topics(topic, timeout=10).topics[topic].partitions)


def read_messages(servers: str, topic: str) -> Iterator[Message]:
    """Every committed record of a topic, each partition in order."""
    consumer = reader(servers)
    try:
        yield from _to_the_ends(consumer, topic, numbers_of(consumer, topic))
    finally:
        consumer.close()


def read_with_offsets(servers: str, topic: str) -> dict[int, dict[int, Seen]]:
    """Every committed record of a topic by partition and offset, in order."""
    consumer = reader(servers)
    try:
        numbers = numbers_of(consumer, topic)
        seen: dict[int, dict[int, Seen]] = {number: {} for number in numbers}
        for message in _to_the_ends(consumer, topic, numbers):
            seen[message.partition()][message.offset()] = Seen.of(message)
        return seen
    finally:
        consumer.close()


def read_committed(servers: str, topic: str) -> dict[int, list[Seen]]:
    """Every committed record of a topic, by partition, in order."""
    return {number: list(records.values()) for number, records in read_with_offsets(servers, topic).items()}


def _to_the_ends(consumer: Consumer, topic: str, numbers: Sequence[int]) -> Iterator[Message]:
    consumer.assign([TopicPartition(topic, number, 0) for number in numbers])
    waiting = set(numbers)
    while waiting:
        for message in consumer.consume(5_000, timeout=0.1):
            error = message.error()
            if error is None:
                yield message
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                waiting.discard(message.partition())
