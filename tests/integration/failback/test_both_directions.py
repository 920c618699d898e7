"""Failback where the topology has a flow in the other direction too, and what groups find on either side."""

from __future__ import annotations

from pathlib import Path

from local.kafka import KafkaClusters
from support.failing_back import (
    both_ways,
    commit,
    committed,
    fail_back,
    fail_over,
    new_name,
    numbered,
    values_of,
    write,
)
from support.mirroring import create_topic, twins
from support.reading import read_with_offsets
from twinlog.operations.checkpoint import Checkpointing


def test_one_name_mirrored_both_ways_fails_over_in_either_direction(kafka_pair: KafkaClusters, tmp_path: Path) -> None:
    topic = new_name()
    there, back = both_ways(kafka_pair, tmp_path, topic, "identity")
    nyc, lon = there.source_servers, there.target_servers
    there.create(topic)
    create_topic(lon, topic, 1, {})
    write(nyc, topic, numbered("n", 4))
    write(lon, topic, numbered("l", 4))
    for _ in range(2):
        assert there.mirror().failures == []
        assert back.mirror().failures == []

    write(nyc, topic, ["stranded at nyc"])
    fail_over(there)
    write(lon, topic, ["led by lon"])
    result = fail_back(there)
    assert (result.figures["stranded_left"], result.figures["came_home"]) == (1, 1)

    # And the other cluster goes, in the other direction.
    assert there.mirror().recorded.records == 0
    assert back.mirror().recorded.records == 0
    write(lon, topic, ["stranded at lon"])
    fail_over(back)
    write(nyc, topic, ["led by nyc"])
    result = fail_back(back)
    assert (result.figures["stranded_left"], result.figures["came_home"]) == (1, 1)
    for flow in (there, back):
        assert flow.mirror().recorded.records == 0
    shared = [*numbered("n", 4), *numbered("l", 4), "led by lon", "led by nyc"]
    assert sorted(values_of(nyc, topic)) == sorted([*shared, "stranded at nyc"])
    assert sorted(values_of(lon, topic)) == sorted([*shared, "stranded at lon"])


def test_under_prefixed_names_each_sites_own_topic_is_left_to_the_topologys_flow(
    kafka_pair: KafkaClusters, tmp_path: Path
) -> None:
    topic = new_name()
    there, back = both_ways(kafka_pair, tmp_path, topic, "prefixed")
    nyc, lon, twin, its_twin = there.source_servers, there.target_servers, there.twin(topic), back.twin(topic)
    there.create(topic)
    create_topic(lon, topic, 1, {})
    write(nyc, topic, numbered("n", 3))
    write(lon, topic, numbered("own", 3))
    assert there.mirror().failures == []
    assert back.mirror().failures == []
    fail_over(there)
    write(lon, twin, ["written at lon for nyc"])
    write(lon, topic, ["own3"])

    result = fail_back(there)
    assert result.figures["came_home"] == 1
    assert values_of(nyc, topic) == [*numbered("n", 3), "written at lon for nyc"]
    assert values_of(nyc, its_twin) == numbered("own", 3), "left to the topology's flow"
    assert back.mirror().recorded.records == 1
    assert values_of(nyc, its_twin) == numbered("own", 4)
    assert there.mirror().recorded.records == 0
    assert values_of(lon, twin) == [*numbered("n", 3), "written at lon for nyc"]

    # And the other cluster goes, in the other direction.
    write(lon, topic, ["stranded at lon"])
    fail_over(back)
    write(nyc, its_twin, ["written at nyc for lon"])
    write(nyc, topic, ["n3"])
    result = fail_back(back)
    assert (result.figures["stranded_left"], result.figures["came_home"]) == (1, 1)
    assert values_of(lon, topic) == [*numbered("own", 4), "stranded at lon", "written at nyc for lon"]
    assert values_of(nyc, its_twin) == [*numbered("own", 4), "written at nyc for lon"]
    assert values_of(lon, twin) == [*numbered("n", 3), "written at lon for nyc"], "left to the topology's flow"
    assert (there.mirror().recorded.records, back.mirror().recorded.records) == (1, 0)
    assert values_of(lon, twin) == values_of(nyc, topic) == [*numbered("n", 3), "written at lon for nyc", "n3"]


def test_groups_read_nothing_twice_and_skip_nothing_on_either_side_of_the_seam(
    kafka_pair: KafkaClusters, tmp_path: Path
) -> None:
    topic = new_name()
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    flow = twins(nyc, lon, tmp_path, (topic,), emit_checkpoints_enabled=True, sync_group_offsets_enabled=True)
    flow.create(topic)
    twin = flow.twin(topic)
    write(nyc, topic, numbered("a", 10))
    early, late, done = (new_name(word) for word in ("early", "late", "done"))
    for group in (early, late, done):
        commit(nyc, group, topic, 10)
    assert flow.mirror().failures == []
    write(nyc, topic, ["lost"])
    fail_over(flow)
    write(lon, twin, numbered("b", 5))  # offsets 11 to 15, behind a marker
    commit(lon, early, twin, 4)
    commit(lon, late, twin, 13)
    commit(lon, done, twin, 16)
    result = fail_back(flow)
    assert {row["group"] for row in result.figures["groups_moved"]} == {early, late, done}
    assert result.figures["groups_left_out"] == []
    source = values_of(nyc, topic)
    assert source == [*numbered("a", 10), "lost", *numbered("b", 5)]
    assert committed(nyc, early, topic) == 4
    assert committed(nyc, late, topic) == 13, "b2, behind the one that was lost"
    assert committed(nyc, done, topic) == 17, "behind the marker of what came home"

    # They go on at nyc, and the flow's own checkpoints see them on lon again: what went home counts there too.
    write(nyc, topic, ["c0", "c1"])
    assert flow.mirror().recorded.records == 2
    commit(nyc, done, topic, 18)  # c0
    ends = flow.ends()
    found = Checkpointing(flow.topology, flow.flow, ends.source, ends.target, flow.ledger).run()
    assert found.failures == []
    on_lon = {row.group: row.offset for row in found.standings.rows if row.group in (early, late, done)}
    at = {seen.value: offset for offset, seen in read_with_offsets(lon, twin)[0].items()}
    assert list(at) == [value.encode() for value in (*numbered("a", 10), *numbered("b", 5), "c0", "c1")]
    assert on_lon == {early: at[b"a4"], late: at[b"b2"], done: at[b"c1"]}
