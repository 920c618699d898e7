from __future__ import annotations

from twinlog.cluster.metadata import Broker, ClusterMetadata, Partition, Topic
from twinlog.model.topology import Flow
from twinlog.operations.own_topics import (
    PlannedTopic,
    own_topics_on_source,
    own_topics_on_target,
    planned_on_source,
    planned_on_target,
)
from twinlog.operations.preflight import Concern, PreflightWarning, concerns

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


def test_the_topics_of_translated_positions_are_looked_at_where_they_are() -> None:
    at_source, at_target = (Flow("nyc", "lon", offset_syncs_topic_location=place) for place in ("source", "target"))

    assert "nyc.checkpoints.internal" in own_topics_on_target(at_source)
    assert set(own_topics_on_target(at_target)) - set(own_topics_on_target(at_source)) == {
        "mm2-offset-syncs.nyc.internal"
    }
    assert own_topics_on_source(at_source) == ["heartbeats", "mm2-offset-syncs.lon.internal"]
    assert own_topics_on_source(at_target) == ["heartbeats"]


def test_topics_that_are_missing_are_judged_as_they_will_be_made() -> None:
    flow = Flow("nyc", "lon", emit_checkpoints_enabled=False, heartbeats_topic_replication_factor=2)
    three = ClusterMetadata("id", {node: Broker(node, "host", 9092, None) for node in ALL}, {"heartbeats": topic("h")})
    two = ClusterMetadata("id", {node: Broker(node, "host", 9092, None) for node in (0, 1)}, {})

    assert {(one.replicas, one.min_in_sync) for one in planned_on_target(flow, three, 1)} == {(3, 2)}
    assert {(one.replicas, one.min_in_sync) for one in planned_on_target(flow, two, 1)} == {(2, 1)}
    assert planned_on_source(flow, three) == [PlannedTopic("mm2-offset-syncs.lon.internal", 3, 2)]
    assert planned_on_source(flow, two) == [
        PlannedTopic("heartbeats", 2),
        PlannedTopic("mm2-offset-syncs.lon.internal", 2),
    ]
