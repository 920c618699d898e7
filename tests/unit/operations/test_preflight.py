from __future__ import annotations

from twinlog.cluster.metadata import Broker, ClusterMetadata, Partition, Topic
from twinlog.model.topology import Flow
from twinlog.operations.preflight import Concern, PreflightWarning, concerns, target_internal_topics

ALL = (0, 1, 2)


def topic(
    name: str, replicas: tuple[int, ...] = ALL, in_sync: tuple[int, ...] | None = None, leader: int | None = 0
) -> Topic:
    partition = Partition(0, leader, 0, replicas, replicas if in_sync is None else in_sync)
    return Topic(name, None, False, (partition,))


def found(
    *topics: Topic, racks: tuple[str | None, ...] = (None, None, None), in_sync: dict[str, int] | None = None
) -> list[tuple[Concern, tuple[str, ...]]]:
    brokers = {node: Broker(node, "host", 9092, rack) for node, rack in enumerate(racks)}
    view = ClusterMetadata("id", brokers, {one.name: one for one in topics})
    return [(warning.concern, warning.topics) for warning in concerns("lon", view, topics, in_sync or {})]


def test_a_sound_topic_is_no_concern() -> None:
    assert found(topic("a"), racks=("r1", "r2", "r3"), in_sync={"a": 2}) == []


def test_each_concern_names_its_topics() -> None:
    assert found(topic("a", leader=None), topic("b")) == [(Concern.OFFLINE, ("a",))]
    assert found(topic("a", in_sync=(0, 1))) == [(Concern.UNDER_REPLICATED, ("a",))]
    assert found(topic("a", replicas=(0, 1))) == [(Concern.FEW_REPLICAS, ("a",))]
    assert found(topic("a"), topic("b"), in_sync={"a": 1, "b": 2}) == [(Concern.FEW_IN_SYNC, ("a",))]


def test_one_rack_is_a_concern_only_where_there_are_several() -> None:
    racks = ("r1", "r1", "r1", "r2")

    assert found(topic("a"), topic("b", (0, 1, 3)), racks=racks) == [(Concern.ONE_RACK, ("a",))]
    assert found(topic("a"), racks=("r1", "r1", "r1")) == []
    assert found(topic("a"), racks=(None, None, None)) == []


def test_many_topics_are_one_warning() -> None:
    warning = PreflightWarning(Concern.FEW_REPLICAS, "lon", tuple(f"t{number}" for number in range(1200)))

    assert warning.message == (
        "cluster lon: 1,200 topics have fewer than 3 replicas, so that one lost broker may lose records: "
        "t0, t1, t2 and 1,197 more"
    )


def test_the_topics_of_translated_positions_are_looked_at_too() -> None:
    at_source, at_target = (Flow("nyc", "lon", offset_syncs_topic_location=place) for place in ("source", "target"))

    assert "nyc.checkpoints.internal" in target_internal_topics(at_source)
    assert set(target_internal_topics(at_target)) - set(target_internal_topics(at_source)) == {
        "mm2-offset-syncs.nyc.internal"
    }
