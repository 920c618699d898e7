"""Writes a journal on a real cluster as the copier does, without copying anything."""

from __future__ import annotations

from types import TracebackType
from typing import Self
from uuid import uuid4

from confluent_kafka import IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.refusals import principal_of
from twinlog.cluster.secrets import resolve
from twinlog.ledger.journal import Journal
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
        self.access = ClusterAccess("lon", resolve(self.servers, environ={}))
        self.client = self.access.raw()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()

    def create(self) -> None:
        new = NewTopic(self.topic, LANES, 1, config={"cleanup.policy": "compact"})
        self.admin.create_topics([new])[self.topic].result()

    def let_records_be_deleted(self) -> None:
        """A log that is only compacted has none of its records deleted on request."""
        entry = ConfigEntry("cleanup.policy", "compact,delete", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, self.topic, incremental_configs=[entry])
        self.admin.incremental_alter_configs([resource])[resource].result()

    def journal(self, patience_s: float = 60) -> Journal:
        topic_id = self.client.run(self.client.metadata([self.topic])).topics[self.topic].topic_id
        return Journal(self.topic, str(topic_id), self.client, principal_of(self.access.settings), patience_s)

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
