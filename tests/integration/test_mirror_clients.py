"""Settings of a flow's clients that brokers only notice by the requests they get; the requests are watched."""

from __future__ import annotations

import uuid
from collections import defaultdict, deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from kafka.protocol.consumer import FetchRequest

from local.kafka import KafkaCluster, KafkaClusters
from local.kafka.properties import rack
from support.mirroring import create_topic, twins
from support.source_logs import fill
from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.produce_request import Pieces
from twinlog.cluster.raw import RawClient
from twinlog.cluster.secrets import resolve
from twinlog.cluster.signal import Signal
from twinlog.cluster.source_partition import FetchSettings, Parcel, SourcePartitionState
from twinlog.cluster.source_reader import SourceReader
from twinlog.cluster.transaction import TransactionalWriter
from twinlog.model.figures import Figures
from twinlog.model.offsets import PartitionPair, TopicPartition
from twinlog.model.positions import NO_LEADER_EPOCH

PARTITIONS = 6


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


def test_a_rack_is_read_from_its_own_replica(
    three: KafkaCluster, kafka_pair: KafkaClusters, tmp_path: Path, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    near = 2
    flow = twins(
        three.bootstrap_servers,
        kafka_pair["lon"].bootstrap_servers,
        tmp_path,
        (topic,),
        overrides={"consumer.client.rack": rack(near)},
    )
    create_topic(flow.source_servers, topic, PARTITIONS, {}, replicas=3)
    for partition in range(PARTITIONS):
        fill(flow.source_servers, topic, range(200), partition, batch_num_messages=20)
    served = _fetched_bytes(monkeypatch, flow.flow.source)

    result = flow.mirror()

    assert result.failures == []
    assert _leaders(flow.source_servers, topic) == {0, 1, 2}
    assert {node for node, size in served.items() if size} == {near}
    # The leaders were asked first, and sent the reader to its neighbour.
    assert set(served) == {0, 1, 2}
    assert flow.read_target(topic) == flow.read_source(topic)


def test_a_produce_request_stays_within_its_size_and_a_larger_batch_goes_alone(
    three: KafkaCluster, kafka_pair: KafkaClusters, tmp_path: Path, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    most_bytes = 20_000
    flow = twins(
        kafka_pair["nyc"].bootstrap_servers,
        three.bootstrap_servers,
        tmp_path,
        (topic,),
        lanes=1,
        replication_factor=3,
        journal_topic_replication_factor=3,
        overrides={"producer.max.request.size": str(most_bytes)},
    )
    create_topic(flow.source_servers, topic, PARTITIONS, {})
    fill(flow.source_servers, topic, ["x" * 3 * most_bytes] * 5)
    for partition in range(1, PARTITIONS):
        fill(flow.source_servers, topic, ["x" * 500] * 200, partition, batch_num_messages=10)
    sent = _produced_sizes(monkeypatch, flow.twin(topic))

    result = flow.mirror()

    assert result.failures == []
    assert all(len(sizes) == 1 or sum(sizes) <= most_bytes for sizes in sent)
    assert max(map(sum, sent)) > 3 * most_bytes
    assert max(map(len, sent)) > 1
    assert flow.read_target(topic) == flow.read_source(topic)


def test_what_a_reader_and_a_writer_are_told_is_in_their_requests(
    kafka_pair: KafkaClusters, tmp_path: Path, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {
        "consumer.fetch.max.bytes": "40000",
        "consumer.fetch.min.bytes": "7",
        "consumer.fetch.max.wait.ms": "123",
        "consumer.max.partition.fetch.bytes": "9000",
        "producer.max.in.flight.requests.per.connection": "2",
    }
    nyc, lon = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    flow = twins(nyc, lon, tmp_path, (topic,), lanes=1, overrides=told)
    flow.create(topic, 2)
    for partition in range(2):
        fill(nyc, topic, ["x" * 500] * 200, partition, batch_num_messages=5)
    fetched = _fetch_requests(monkeypatch, flow.flow.source, topic)
    most_in_flight = _most_in_flight(monkeypatch, flow.twin(topic))

    result = flow.mirror(tasks=1)

    assert result.failures == []
    assert {(asked.min_bytes, asked.max_wait_ms) for asked in fetched} == {(7, 123)}
    assert max(asked.max_bytes for asked in fetched) == 40_000
    assert {one.partition_max_bytes for asked in fetched for each in asked.topics for one in each.partitions} == {9_000}
    # Of a partition, and of requests: whatever else is ready goes with the next one.
    assert max(most_in_flight.values()) == 2
    assert most_in_flight[None] == 2
    assert flow.read_target(topic) == flow.read_source(topic)


def test_a_broker_is_asked_twice_at_once_and_memory_stays_within_its_bound(
    kafka_pair: KafkaClusters, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nyc = kafka_pair["nyc"].bootstrap_servers
    create_topic(nyc, topic, 4, {})
    for partition in range(4):
        fill(nyc, topic, ["x" * 500] * 200, partition, batch_num_messages=5)
    settings = FetchSettings(max_bytes=20_000, partition_max_bytes=10_000, read_ahead_bytes=60_000)
    together = _asked_together(monkeypatch, "nyc")
    access = ClusterAccess("nyc", resolve({"bootstrap.servers": nyc}, environ={}))
    with access.raw() as source:
        topic_id = source.run(source.metadata([topic])).topics[topic].topic_id
        assert topic_id is not None
        pairs = [PartitionPair(topic, topic_id, topic, topic_id, number) for number in range(4)]
        states = [SourcePartitionState(pair, 0, 200, 1 << 20, NO_LEADER_EPOCH) for pair in pairs]
        reader = SourceReader(source, states, settings, Signal(), Figures())
        peak = source.run(_read_slowly(source, reader))

    assert [state.at for state in states] == [200] * 4
    # Nearly all of the bound is used, and a batch or two may be more than was asked for.
    assert 30_000 < peak < 66_000
    assert max(map(len, together)) == 2
    assert all(not asked[0] & asked[1] for asked in together if len(asked) == 2)


async def _read_slowly(client: RawClient, reader: SourceReader) -> int:
    """Take all that comes at once, and be done with a parcel now and then; the most that was held."""
    reading = client.spawn(reader.run())
    taken: deque[tuple[TopicPartition, Parcel]] = deque()
    peak = 0
    while taken or not all(state.exhausted and not state.parcels for state in reader.partitions.values()):
        await client.pause(0.001)
        for partition in reader.partitions:
            while (parcel := reader.take(partition)) is not None:
                taken.append((partition, parcel))
        peak = max(peak, sum(parcel.batch.size_bytes for _, parcel in taken if parcel.batch is not None))
        if taken:
            reader.done_with(*taken.popleft())
    await reading
    assert reader.failure is None
    return peak


def _asked_together(monkeypatch: pytest.MonkeyPatch, cluster: str) -> list[list[set[int]]]:
    """Filled, at each Fetch to the cluster, with the partitions of all that are without an answer then."""
    seen: list[list[set[int]]] = []
    now: list[set[int]] = []
    request = RawClient.request

    async def watched(client: RawClient, asked: Any, *where: Any, **more: Any) -> Any:
        if not isinstance(asked, FetchRequest) or client.alias != cluster:
            return await request(client, asked, *where, **more)
        ours = {one.partition for each in asked.topics for one in each.partitions}
        now.append(ours)
        seen.append(list(now))
        try:
            return await request(client, asked, *where, **more)
        finally:
            now.remove(ours)

    monkeypatch.setattr(RawClient, "request", watched)
    return seen


def _fetch_requests(monkeypatch: pytest.MonkeyPatch, cluster: str, topic: str) -> list[Any]:
    """Filled with what the readers of a run, who name topics by id, ask of the cluster."""
    asked_for: list[Any] = []
    request = RawClient.request

    async def watched(client: RawClient, asked: Any, *where: Any, **more: Any) -> Any:
        if (
            isinstance(asked, FetchRequest)
            and client.alias == cluster
            and {one.topic for one in asked.topics} == {topic}
        ):
            asked_for.append(asked)
        return await request(client, asked, *where, **more)

    monkeypatch.setattr(RawClient, "request", watched)
    return asked_for


def _most_in_flight(monkeypatch: pytest.MonkeyPatch, topic: str) -> dict[TopicPartition | None, int]:
    """Filled with how many batches of each partition were without an answer at once; for None, how many requests."""
    most: dict[TopicPartition | None, int] = defaultdict(int)
    now: dict[TopicPartition | None, int] = defaultdict(int)
    produce = TransactionalWriter.produce

    async def watched(
        writer: TransactionalWriter, node_id: int | None, batches: Mapping[TopicPartition, Pieces]
    ) -> dict[TopicPartition, int]:
        ours: list[TopicPartition | None] = [partition for partition in batches if partition.topic == topic]
        if ours:
            ours.append(None)
        for partition in ours:
            now[partition] += 1
            most[partition] = max(most[partition], now[partition])
        try:
            return await produce(writer, node_id, batches)
        finally:
            for partition in ours:
                now[partition] -= 1

    monkeypatch.setattr(TransactionalWriter, "produce", watched)
    return most


def _fetched_bytes(monkeypatch: pytest.MonkeyPatch, cluster: str) -> dict[int, int]:
    """Filled with how many bytes of records each broker of the cluster answers with, by its id."""
    served: dict[int, int] = defaultdict(int)
    request = RawClient.request

    async def watched(client: RawClient, asked: Any, node_id: int | None = None, timeout_s: float | None = None) -> Any:
        answer = await request(client, asked, node_id, timeout_s)
        if isinstance(asked, FetchRequest) and client.alias == cluster and node_id is not None:
            served[node_id] += sum(len(one.records or b"") for each in answer.responses for one in each.partitions)
        return answer

    monkeypatch.setattr(RawClient, "request", watched)
    return served


def _produced_sizes(monkeypatch: pytest.MonkeyPatch, topic: str) -> list[list[int]]:
    """Filled with the sizes of the batches of each Produce request to the topic."""
    sent: list[list[int]] = []
    produce = TransactionalWriter.produce

    async def watched(
        writer: TransactionalWriter, node_id: int | None, batches: Mapping[TopicPartition, Pieces]
    ) -> dict[TopicPartition, int]:
        if all(partition.topic == topic for partition in batches):
            sent.append([sum(map(len, pieces)) for pieces in batches.values()])
        return await produce(writer, node_id, batches)

    monkeypatch.setattr(TransactionalWriter, "produce", watched)
    return sent


def _leaders(servers: str, topic: str) -> set[int]:
    listed = AdminClient({"bootstrap.servers": servers}).list_topics(topic, timeout=10).topics[topic]
    return {partition.leader for partition in listed.partitions.values()}
