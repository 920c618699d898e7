"""Writes a journal on a real cluster as the copier does, without copying anything."""

from __future__ import annotations

from uuid import uuid4

from confluent_kafka import IsolationLevel, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from twinlog.ledger.record import Journal
from twinlog.model.offsets import JournalEntry
from twinlog.wire import journal as wire

LANES = 3


class JournalWriter:
    """One transactional producer a lane, which is the journal's partition."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.servers = {"bootstrap.servers": bootstrap_servers}
        self.admin = AdminClient(self.servers)
        self.topic = f"twinlog.nyc.lon.{uuid4().hex[:8]}.journal.internal"
        self.create()
        self.producers: dict[int, Producer] = {}

    def create(self) -> None:
        new = NewTopic(self.topic, LANES, 1, config={"cleanup.policy": "compact"})
        self.admin.create_topics([new])[self.topic].result()

    def journal(self, patience_s: float = 60) -> Journal:
        described = self.admin.describe_topics(TopicCollection([self.topic]))[self.topic].result()
        return Journal(self.topic, str(described.topic_id), self.servers, patience_s)

    def lane(self, number: int) -> Producer:
        if number not in self.producers:
            settings = {**self.servers, "transactional.id": f"{self.topic}.{number}"}
            self.producers[number] = Producer(settings)
            self.producers[number].init_transactions()
        return self.producers[number]

    def write(self, number: int, entries: list[JournalEntry], *, commit: bool = True) -> None:
        producer = self.begin(number, entries)
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()

    def begin(self, number: int, entries: list[JournalEntry]) -> Producer:
        producer = self.lane(number)
        producer.begin_transaction()
        for entry in entries:
            key, value = wire.encode(entry)
            producer.produce(self.topic, key=key, value=value, partition=number)
        producer.flush()
        return producer

    def remove(self, number: int, entry: JournalEntry) -> None:
        producer = self.lane(number)
        producer.begin_transaction()
        producer.produce(self.topic, key=wire.encode(entry)[0], value=None, partition=number)
        producer.commit_transaction()

    def ends(self) -> dict[int, int]:
        """The high watermarks."""
        asked = {TopicPartition(self.topic, number): OffsetSpec.latest() for number in range(LANES)}
        answers = self.admin.list_offsets(asked, isolation_level=IsolationLevel.READ_UNCOMMITTED)
        return {partition.partition: future.result().offset for partition, future in answers.items()}
