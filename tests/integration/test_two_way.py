"""One name mirrored both ways, with both sides busy: each ends with the union, every record once."""

from __future__ import annotations

import random
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from local.kafka import KafkaClusters
from support.crashing import ChildRun, Job, Step
from support.mirroring import Twins, create_topic, producer, twins
from support.reading import Seen, read_committed
from support.source_logs import delete_records, fill
from support.syncing import Hand, both_ways, opposite
from twinlog.operations.mirror import new_run_id
from twinlog.operations.reconcile import Reconciling

PARTITIONS = 2
ROUNDS = 6
KILLED_IN_ROUNDS = {1: Step.DURING_PRODUCE, 3: Step.AFTER_COMMIT, 4: Step.BEFORE_LEDGER}
MOST_TRIES = 10
EVERY_S = 0.05


@pytest.fixture
def topic() -> str:
    return f"shared-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flows(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> tuple[Twins, Twins]:
    """The flow there and the flow back."""
    nyc, lon = kafka_pair["nyc"].bootstrap_servers, kafka_pair["lon"].bootstrap_servers
    return both_ways(twins(nyc, lon, tmp_path, (topic,), naming="identity", transaction_bytes=2_000))


@contextmanager
def busy_writer(servers: str, topic: str, mark: str) -> Iterator[list[bytes]]:
    """Somebody who writes to a topic until the block ends; every record that is there then is in the list."""
    written: list[bytes] = []
    ended = threading.Event()

    def write() -> None:
        chance = random.Random(mark)
        writer = producer(servers)
        while not ended.wait(EVERY_S):
            for _ in range(chance.randrange(1, 30)):
                value = f"{mark} {len(written)}".encode()
                writer.produce(topic, value, b"key", partition=chance.randrange(PARTITIONS))
                written.append(value)
            assert writer.flush(30) == 0

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            yield written
        finally:
            ended.set()
            writing.result()


def write(servers: str, topic: str, value: bytes) -> None:
    writer = producer(servers)
    writer.produce(topic, value, b"key")
    assert writer.flush(30) == 0


def killed_run(flow: Twins, step: Step) -> str:
    """A run that was killed at this step. One ends by itself where it finds nothing to copy, since what the other
    direction's dead run has left open holds all that is new back."""
    for _ in range(MOST_TRIES):
        run = new_run_id()
        with ChildRun(Job(flow, run, step)) as child:
            if child.was_killed():
                return run
    raise AssertionError(f"{MOST_TRIES} runs of {flow.flow.name} had nothing to copy")


def run_again_and_again(flow: Twins) -> int:
    """Some runs, some of them killed and tried again; how many offsets they passed over as not theirs to send."""
    passed_over = 0
    for number in range(ROUNDS):
        run = killed_run(flow, KILLED_IN_ROUNDS[number]) if number in KILLED_IN_ROUNDS else new_run_id()
        result = flow.mirror(run=run)
        assert (result.failures, result.skipped) == ([], None)
        passed_over += result.recorded.gaps.get("filtered", 0)
    return passed_over


def values_of(records: dict[int, list[Seen]], mark: str) -> dict[int, list[bytes | None]]:
    """Of each partition, the records of one writer in the order in which they are there."""
    wanted = mark.encode()
    return {
        number: [record.value for record in found if (record.value or b"").startswith(wanted)]
        for number, found in records.items()
    }


def test_both_directions_at_once_end_with_the_union_also_after_kills(flows: tuple[Twins, Twins], topic: str) -> None:
    there, back = flows
    for servers in (there.source_servers, there.target_servers):
        create_topic(servers, topic, PARTITIONS, {})

    with (
        busy_writer(there.source_servers, topic, "nyc") as in_nyc,
        busy_writer(there.target_servers, topic, "lon") as in_lon,
        ThreadPoolExecutor(2) as pool,
    ):
        passed_over = list(pool.map(run_again_and_again, flows))
    for flow in (there, back, there, back):
        assert flow.mirror().failures == []

    nyc, lon = (read_committed(servers, topic) for servers in (there.source_servers, there.target_servers))
    once = Counter(dict.fromkeys([*in_nyc, *in_lon], 1))
    for side in (nyc, lon):
        assert Counter(record.value for records in side.values() for record in records) == once
    for mark in ("nyc ", "lon "):
        assert values_of(nyc, mark) == values_of(lon, mark), "a writer's records keep their order"
    assert min(passed_over) > 0


def test_a_compacted_topic_is_refused_with_the_reason(flows: tuple[Twins, Twins], topic: str) -> None:
    there, _ = flows
    create_topic(there.source_servers, topic, PARTITIONS, {"cleanup_policy": "compact"})
    write(there.source_servers, topic, b"a value")

    result = there.mirror()

    assert result.recorded.records == 0
    (sentence,) = result.failures
    assert sentence.startswith(f"{topic} is compacted on {there.flow.source} and mirrored both ways")


def test_a_topic_that_is_compacted_on_the_other_side_only_is_refused_too(
    flows: tuple[Twins, Twins], topic: str
) -> None:
    there, back = (flow.with_settings(sync_topic_configs_enabled=False) for flow in flows)
    both = {flow.flow.name: flow.flow for flow in (there, back)}
    there = replace(there, topology=replace(there.topology, flows=both))
    create_topic(there.source_servers, topic, PARTITIONS, {})
    create_topic(there.target_servers, topic, PARTITIONS, {"cleanup_policy": "compact"})
    write(there.source_servers, topic, b"a value")

    result = there.mirror()

    assert result.recorded.records == 0
    (sentence,) = result.failures
    assert sentence.startswith(f"{topic} is compacted on {there.flow.target} and mirrored both ways")


def test_what_expired_before_it_was_passed_over_is_lost_only_where_it_did_not_come_from_there(
    flows: tuple[Twins, Twins], topic: str
) -> None:
    there, back = flows
    create_topic(there.source_servers, topic, 1, {})
    there.mirror()
    back.mirror()
    fill(there.source_servers, topic, range(4))
    there.mirror()
    fill(back.source_servers, topic, ["from lon", "from lon too"])
    # On lon: four records of nyc, their transaction's marker, two of lon.
    delete_records(back.source_servers, topic, 6)

    result = back.mirror()

    assert result.recorded.gaps == {"filtered": 4, "expired": 2}
    assert [record.value for record in there.read_source(topic)[0]][4:] == [b"from lon too"]
    (finding,) = result.findings
    assert "offsets 0 to 5 were removed by retention" in finding.message
    assert "4 of them had come from the target, the other 2" in finding.message


def test_what_a_flow_brought_before_it_was_disabled_is_not_sent_back(flows: tuple[Twins, Twins], topic: str) -> None:
    there, back = flows
    create_topic(there.source_servers, topic, 1, {})
    write(there.source_servers, topic, b"from nyc")
    there.mirror()
    write(back.source_servers, topic, b"from lon")
    disabled = {**back.topology.flows, there.flow.name: replace(there.flow, enabled=False)}

    result = replace(back, topology=replace(back.topology, flows=disabled)).mirror()

    assert result.recorded.records == 1
    assert [record.value for record in there.read_source(topic)[0]] == [b"from nyc", b"from lon"]


def test_what_a_flow_brought_that_this_topology_does_not_list_is_not_sent_back_either(
    flows: tuple[Twins, Twins], topic: str
) -> None:
    there = replace(flows[0], topology=replace(flows[0].topology, flows={flows[0].flow.name: flows[0].flow}))
    back = opposite(there)
    create_topic(there.source_servers, topic, 1, {})
    write(there.source_servers, topic, b"from nyc")
    there.mirror()
    write(back.source_servers, topic, b"from lon")

    ran = [flow.mirror() for flow in (back, there, back, there)]
    proven = Reconciling(there.topology, there.flow, there.ends(), there.ledger).run()
    both = [read_committed(servers, topic)[0] for servers in (there.source_servers, there.target_servers)]
    nyc = Hand(there.source_servers)
    nyc.delete(topic)
    nyc.create(topic)
    rebuilt = back.mirror()

    assert [(result.recorded.records, result.failures) for result in ran] == [(1, []), (0, []), (0, []), (0, [])]
    assert proven.differences == ()
    assert [[record.value for record in side] for side in both] == [[b"from nyc", b"from lon"]] * 2
    # A topic that was lost there, and is there anew, gets everything.
    assert rebuilt.recorded.records == 2
    assert [record.value for record in there.read_source(topic)[0]] == [b"from nyc", b"from lon"]
