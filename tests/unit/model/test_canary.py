"""The verdict on a round of canaries: what was done to the records is what it says, whatever else the topic holds."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.model.canary import Content, Mark, MarkId, Sighting, canary_topic, identify, judge, quantile
from twinlog.model.flow import Flow
from twinlog.model.selection import LeftOut, TopicSelection
from twinlog.model.topology import Cluster, Topology

SENT_MS = 1_700_000_000_000


def marks(partitions: int, records: int, round_id: str = "r1", flow: str = "nyc->lon") -> list[Mark]:
    return [
        Mark(MarkId(flow, round_id, partition, sequence), SENT_MS + sequence)
        for partition in range(partitions)
        for sequence in range(records)
    ]


def sightings(sent: list[Mark], after_ms: float = 250.0) -> list[Sighting]:
    return [Sighting(mark.id.partition, mark.content(), mark.sent_ms + after_ms) for mark in sent]


rounds = st.builds(marks, st.integers(1, 4), st.integers(2, 12))


@given(rounds)
def test_what_arrives_as_it_was_sent_is_clean(sent: list[Mark]) -> None:
    verdict = judge(sent, sightings(sent), complete=True)
    assert verdict.clean
    assert verdict.arrived == verdict.sent == len(sent)
    assert verdict.latency_p50_s == verdict.latency_p99_s == 0.25


@given(rounds, st.randoms(use_true_random=False))
def test_partitions_may_be_read_in_any_interleaving(sent: list[Mark], chance: random.Random) -> None:
    by_partition: dict[int, list[Sighting]] = {}
    for one in sightings(sent):
        by_partition.setdefault(one.partition, []).append(one)
    seen = []
    while by_partition:
        number = chance.choice(sorted(by_partition))
        seen.append(by_partition[number].pop(0))
        if not by_partition[number]:
            del by_partition[number]
    assert judge(sent, seen, complete=True).clean


@given(rounds, st.data(), st.booleans())
def test_what_is_dropped_is_lost_or_late(sent: list[Mark], data: st.DataObject, complete: bool) -> None:
    dropped = data.draw(st.sets(st.integers(0, len(sent) - 1), min_size=1))
    seen = [one for number, one in enumerate(sightings(sent)) if number not in dropped]
    verdict = judge(sent, seen, complete=complete)
    expected = {"lost": len(dropped)} if complete else {"late": len(dropped)}
    assert {name: count for name, count in verdict.faults.items() if count} == expected
    assert (verdict.latency_p99_s is None) == (len(dropped) == len(sent))


@given(rounds, st.data())
def test_what_is_doubled_is_only_that(sent: list[Mark], data: st.DataObject) -> None:
    doubled = data.draw(st.lists(st.integers(0, len(sent) - 1), min_size=1))
    seen = sightings(sent)
    seen += [seen[number] for number in doubled]
    verdict = judge(sent, seen, complete=True)
    assert {name: count for name, count in verdict.faults.items() if count} == {"doubled": len(doubled)}


@given(st.integers(2, 12), st.data())
def test_what_changes_places_is_out_of_order(records: int, data: st.DataObject) -> None:
    sent = marks(1, records)
    first = data.draw(st.integers(0, records - 2))
    second = data.draw(st.integers(first + 1, records - 1))
    seen = sightings(sent)
    seen[first], seen[second] = seen[second], seen[first]
    verdict = judge(sent, seen, complete=True)
    # Everything up to the second place now comes after the one that was sent last of them.
    assert {name: count for name, count in verdict.faults.items() if count} == {"out_of_order": second - first}


CHANGES = {
    "key": lambda content: content._replace(key=b"another"),
    "no key": lambda content: content._replace(key=None),
    "value": lambda content: content._replace(value=content.value + b" "),
    "not JSON": lambda content: content._replace(value=b"\xff{"),
    "no value": lambda content: content._replace(value=None),
    "a header more": lambda content: content._replace(headers=(*content.headers, ("more", b""))),
    "no headers": lambda content: content._replace(headers=()),
    "headers in another order": lambda content: content._replace(headers=content.headers[::-1]),
    "timestamp": lambda content: content._replace(timestamp_ms=content.timestamp_ms + 1),
    "key of another mark": lambda content: content._replace(key=marks(1, 1)[0].content().key),
}


@pytest.mark.parametrize("change", CHANGES)
@given(records=st.integers(2, 8), data=st.data())
def test_what_is_altered_is_found_by_what_is_left_of_it(change: str, records: int, data: st.DataObject) -> None:
    sent = marks(2, records)
    seen = sightings(sent)
    number = data.draw(st.integers(1, len(seen) - 1))
    seen[number] = replace(seen[number], content=CHANGES[change](seen[number].content))
    verdict = judge(sent, seen, complete=True)
    assert {name: count for name, count in verdict.faults.items() if count} == {"altered": 1}


def test_another_partition_is_an_alteration() -> None:
    sent = marks(2, 3)
    seen = sightings(sent)
    seen[4] = replace(seen[4], partition=0)
    assert {name: count for name, count in judge(sent, seen, complete=True).faults.items() if count} == {"altered": 1}


def test_an_altered_copy_beside_the_true_one_is_both() -> None:
    sent = marks(1, 3)
    seen = sightings(sent)
    seen.append(replace(seen[1], content=seen[1].content._replace(value=b"forged")))
    verdict = judge(sent, seen, complete=True)
    assert (verdict.doubled, verdict.altered, verdict.lost, verdict.out_of_order) == (1, 1, 0, 0)


def test_other_rounds_flows_and_strangers_are_passed_over() -> None:
    sent = marks(1, 3)
    others = sightings(marks(1, 3, "r0")) + sightings(marks(1, 3, "r1", "nyc->par"))
    stranger = Sighting(0, Content(b"k", b"[1, 2]", (), 0), 0.0)
    assert judge(sent, [*others, stranger, *sightings(sent), *others], complete=True).clean
    assert identify(stranger.content, {mark.id for mark in sent}) is None


def test_latencies_are_those_of_first_sightings() -> None:
    sent = marks(1, 100)
    seen = [Sighting(0, mark.content(), mark.sent_ms + 1000 * (number + 1)) for number, mark in enumerate(sent)]
    seen.append(replace(seen[0], seen_ms=seen[0].seen_ms + 500_000))
    verdict = judge(sent, seen, complete=True)
    assert (verdict.latency_p50_s, verdict.latency_p99_s) == (50.0, 99.0)


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.01, 1))
def test_a_quantile_is_one_of_the_values_and_enough_lie_below(values: list[float], share: float) -> None:
    found = quantile(sorted(values), share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values)


def topology(*flows: Flow) -> Topology:
    aliases = {alias for flow in flows for alias in (flow.source, flow.target)}
    return Topology({alias: Cluster(alias, f"{alias}:1") for alias in aliases}, {flow.name: flow for flow in flows})


@pytest.mark.parametrize("naming", ["prefixed", "identity", "custom"])
def test_a_flow_takes_the_canary_of_its_source_and_no_other(naming: str) -> None:
    settings = {"topics": ("orders",), "naming": naming, "naming_format": "all.${topic}"}
    there, back = Flow("nyc", "lon", **settings), Flow("lon", "nyc", **settings)
    both = topology(there, back)
    assert TopicSelection(both, there).left_out(canary_topic("nyc")) is None
    assert TopicSelection(both, back).left_out(canary_topic("lon")) is None
    # What the one brought is not the other's own.
    assert TopicSelection(both, back).left_out(canary_topic("nyc")) is LeftOut.FILTERED


def test_a_flow_without_canaries_asks_its_filter() -> None:
    flow = Flow("nyc", "lon", topics=("orders",), canary_enabled=False)
    assert TopicSelection(topology(flow), flow).left_out(canary_topic("nyc")) is LeftOut.FILTERED
