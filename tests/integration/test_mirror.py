from __future__ import annotations

import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from local.kafka import KafkaClusters
from support.mirroring import Twins, create_topic, producer, twins
from twinlog.cluster.raw import RawClient
from twinlog.cluster.visibility import topics_visible
from twinlog.intake.extensions import naming_of
from twinlog.operations.lag import measure
from twinlog.operations.survey import survey


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    return twins(kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers, tmp_path, (topic,))


def test_runs_copy_what_is_new_once(flow: Twins, topic: str) -> None:
    flow.create(topic, partitions=3)
    writer = producer(flow.source_servers)
    for number in range(300):
        writer.produce(topic, f"value {number}", f"key {number}", partition=number % 3)
    writer.flush()

    first = flow.mirror()
    again = flow.mirror()
    for number in range(10):
        writer.produce(topic, f"late {number}", partition=0)
    writer.flush()
    late = flow.mirror()

    assert [result.failures for result in (first, again, late)] == [[], [], []]
    assert [result.recorded.records for result in (first, again, late)] == [300, 0, 10]
    assert flow.read_target(topic) == flow.read_source(topic)


def test_planning_asks_as_often_for_many_partitions_as_for_few(
    flow: Twins, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends, asked = flow.ends(), Counter[str]()
    request = RawClient.request

    async def counted(client: RawClient, one: Any, *where: Any, **more: Any) -> Any:
        asked[one.name] += 1
        return await request(client, one, *where, **more)

    def requests_for(name: str, partitions: int) -> dict[str, int]:
        create_topic(flow.source_servers, name, partitions, {})
        create_topic(flow.target_servers, flow.twin(name), partitions, {})
        with ends.target.raw() as target, ends.source.raw(beside=target) as source:
            assert source.run(topics_visible(source, {name: partitions}))
            assert target.run(topics_visible(target, {flow.twin(name): partitions}))
            # Until the brokers lead all that is new, they are asked again.
            target.run(survey(source, target, flow.flow, naming_of(flow.flow), [name]))
            with monkeypatch.context() as patched:
                patched.setattr(RawClient, "request", counted)
                asked.clear()
                found = target.run(survey(source, target, flow.flow, naming_of(flow.flow), [name]))
                (described,) = target.run(source.metadata([name])).topics.values()
                target.run(measure(source, target, flow.flow, naming_of(flow.flow), [described]))
            assert len(found.partitions.pairs) == partitions
            return dict(asked)

    assert requests_for(f"{topic}-few", 2) == requests_for(f"{topic}-many", 150)
