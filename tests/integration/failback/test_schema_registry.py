"""The Schema Registry's topic in a prefixed flow: ids resolve on both sides, new ones come home, clashes are named."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from local.kafka import KafkaClusters
from support.failing_back import fail_back, fail_over, new_name, plan_of
from support.mirroring import Twins, twins
from support.reading import read_committed
from support.schema_server import SETTINGS, framed, register, registry
from twinlog.model.takeover import Request
from twinlog.operations.takeover_plan import TakeoverPlanning

ORDER = '{"type": "record", "name": "Order", "fields": []}'
REFUND = '{"type": "record", "name": "Refund", "fields": []}'


@pytest.fixture
def schemas() -> str:
    return f"_schemas-{new_name('t')}"


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, schemas: str) -> Twins:
    topic = new_name()
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    made = twins(nyc, lon, tmp_path, (topic,), schemas_topic=schemas)
    made.create(topic)
    made.create(schemas, **SETTINGS)
    register(nyc, schemas, "orders-value", 1, 1, ORDER)
    return made


def send(servers: str, topic: str, number: int) -> None:
    writer = Producer({"bootstrap.servers": servers})
    writer.produce(topic, framed(number, b"..."))
    assert writer.flush(30) == 0


def test_ids_resolve_on_both_sides_and_new_schemas_come_home(flow: Twins, schemas: str) -> None:
    nyc, lon, topic = flow.source_servers, flow.target_servers, flow.flow.topics[0]
    send(nyc, topic, 1)
    send(nyc, topic, 7)
    assert flow.mirror().failures == []
    assert read_committed(lon, schemas) == read_committed(nyc, schemas), "under its own name, in order"
    with registry(lon, schemas) as address:
        client = SchemaRegistryClient({"url": address})
        assert client.get_schema(1).schema_str == ORDER
        with pytest.raises(SchemaRegistryError, match="not found"):
            client.get_schema(7)

    ends = flow.ends()
    planning = TakeoverPlanning(flow.topology, flow.flow, ends.source, ends.target, flow.ledger)
    plan = planning.plan(Request(), keep=False)
    assert plan.registry["missing"] == [{"topic": flow.twin(topic), "part": "value", "id": 7, "records": 1}]
    properties = {(one["registry"], one["name"]): one["value"] for one in plan.registry["properties"]}
    assert properties == {
        (flow.flow.target, "kafkastore.bootstrap.servers"): lon,
        (flow.flow.target, "kafkastore.topic"): schemas,
        (flow.flow.target, "leader.eligibility"): "true",
        (flow.flow.source, "leader.eligibility"): "false",
    }
    assert any("register no new ones and do not restart the registry" in note for note in plan.notes)
    assert any("schema id 7 is used by 1 sampled records" in note for note in plan.notes)

    fail_over(flow)
    register(lon, schemas, "refunds-value", 1, 2, REFUND)
    send(lon, flow.twin(topic), 2)
    assert fail_back(flow).figures["verdict"] == "equal"
    with registry(nyc, schemas) as address:
        assert SchemaRegistryClient({"url": address}).get_schema(2).schema_str == REFUND
    assert flow.mirror().recorded.records == 0


def test_an_id_that_stands_for_two_schemas_is_refused_and_both_are_named(flow: Twins, schemas: str) -> None:
    nyc, lon = flow.source_servers, flow.target_servers
    assert flow.mirror().failures == []
    register(nyc, schemas, "payments-value", 1, 2, ORDER)
    fail_over(flow)
    register(lon, schemas, "refunds-value", 1, 2, REFUND)
    (refused,) = plan_of(flow).refused
    assert f"schema id 2 of {schemas} is subject payments-value version 1 on {flow.flow.source}" in refused
    assert f"subject refunds-value version 1 on {flow.flow.target}" in refused


def test_a_schema_that_never_crossed_crosses_whatever_becomes_of_stranded_records(flow: Twins, schemas: str) -> None:
    nyc, lon, topic = flow.source_servers, flow.target_servers, flow.flow.topics[0]
    assert flow.mirror().failures == []
    register(nyc, schemas, "refunds-value", 1, 2, REFUND)
    send(nyc, topic, 2)
    fail_over(flow)
    plan = plan_of(flow)
    assert any("keep the registry of" in note and "leader.eligibility=false" in note for note in plan.notes)
    result = fail_back(flow)
    assert result.figures["stranded_left"] == 1, "the record, and not its schema"
    send(nyc, topic, 2)
    assert flow.mirror().recorded.records == 1
    with registry(lon, schemas) as address:
        assert SchemaRegistryClient({"url": address}).get_schema(2).schema_str == REFUND
