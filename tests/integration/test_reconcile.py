"""Every kind of tampering is found, with the right verdict and offsets, and nothing beside it.

All topics are filled with ten records in one batch, copied in one run by a copier that tampers with some of them, and
compared in one go; then each is looked at by itself.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from local.kafka import KafkaClusters
from support.mirroring import Twins, producer, twins
from support.reconciling import FULL, Found, differences, reconcile
from support.source_logs import delete_records, fill
from support.tampering import Change, doubled, dropped, replaced, stamped, swapped, tampering
from twinlog.model.reconciliation import Kind, Verdict
from twinlog.operations.reconcile_result import Reconciliation
from twinlog.wire.records import RawRecord

IN_2001_MS = 1_000_000_000_000


@dataclass(frozen=True)
class Case:
    """How a twin is tampered with, while it is copied or afterwards, and what is to be found."""

    expected: tuple[Found, ...]
    copying: Change | None = None
    afterwards: Callable[[Twins, str], None] = lambda _flow, _topic: None
    detail: str = ""


def somebody_writes(flow: Twins, topic: str) -> None:
    fill(flow.target_servers, flow.twin(topic), ["not ours", "nor this"], linger_ms=100)


def exchanged(place: int) -> Change:
    """A record by one that has nothing in common with it."""
    changes = (
        replaced(place, b"key 5", b"KEY 9"),
        replaced(place, b"value 5", b"VALUE 9"),
        replaced(place, b"header 5", b"HEADER 9"),
        stamped(place, IN_2001_MS),
    )

    def change(records: list[RawRecord]) -> list[RawRecord]:
        return functools.reduce(lambda changed, one: one(changed), changes, records)

    return change


def target_cut(flow: Twins, topic: str) -> None:
    delete_records(flow.target_servers, flow.twin(topic), 4)


def source_cut(flow: Twins, topic: str) -> None:
    delete_records(flow.source_servers, topic, 4)


CASES = {
    "untouched": Case(()),
    "dropped": Case((Found(Kind.MISSING, 0, 3, 3), Found(Kind.MISPLACED, 0, 4, 3, 6)), dropped(3)),
    "last-dropped": Case((Found(Kind.MISSING, 0, 9, 9),), dropped(9)),
    "doubled": Case((Found(Kind.DOUBLED, 0, 2, 10),), doubled(2)),
    "value-altered": Case((Found(Kind.ALTERED, 0, 5, 5),), replaced(5, b"value 5", b"value X"), detail="value"),
    "key-altered": Case((Found(Kind.ALTERED, 0, 5, 5),), replaced(5, b"key 5", b"key X"), detail="key"),
    "header-altered": Case((Found(Kind.ALTERED, 0, 5, 5),), replaced(5, b"header 5", b"header X"), detail="headers"),
    "timestamp-altered": Case((Found(Kind.ALTERED, 0, 5, 5),), stamped(5, IN_2001_MS), detail="timestamp"),
    "exchanged": Case((Found(Kind.MISSING, 0, 5, 5), Found(Kind.EXTRA, 0, 5, 5)), exchanged(5)),
    "reordered": Case((Found(Kind.OUT_OF_ORDER, 0, 6, 7), Found(Kind.MISPLACED, 0, 7, 6)), swapped(6, 7)),
    "added": Case((Found(Kind.FOREIGN, 0, None, 11, 2),), afterwards=somebody_writes),
    "target-cut": Case((Found(Kind.MISSING, 0, 0, 0, 4),), afterwards=target_cut, detail="somebody has deleted it"),
    "source-cut": Case((), afterwards=source_cut),
}


@dataclass(frozen=True)
class Compared:
    flow: Twins
    topics: dict[str, str]
    result: Reconciliation


@pytest.fixture(scope="module")
def compared(kafka_pair: KafkaClusters, tmp_path_factory: pytest.TempPathFactory) -> Compared:
    topics = {name: f"{name}-{uuid.uuid4().hex[:6]}" for name in CASES}
    source, target = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    flow = twins(source, target, tmp_path_factory.mktemp("tampered"), tuple(topics.values()))
    writer = producer(source, linger_ms=200)
    for topic in topics.values():
        flow.create(topic)
        for number in range(10):
            writer.produce(topic, f"value {number}", f"key {number}", headers=[("name", f"header {number}".encode())])
    assert writer.flush(30) == 0
    with tampering({flow.twin(topics[name]): case.copying for name, case in CASES.items() if case.copying}):
        assert flow.mirror().failures == []
    for name, case in CASES.items():
        case.afterwards(flow, topics[name])
    return Compared(flow, topics, reconcile(flow, FULL))


@pytest.mark.parametrize("name", CASES)
def test_tampering_is_found(compared: Compared, name: str) -> None:
    topic, case = compared.topics[name], CASES[name]
    assert sorted(differences(compared.result, topic), key=str) == sorted(case.expected, key=str)
    told = [one.detail for one in compared.result.differences if one.topic == topic]
    assert case.detail in "; ".join(told)


def test_the_verdict_is_that_something_differs(compared: Compared) -> None:
    assert compared.result.verdict is Verdict.DIFFERENT
    assert {one.topic for one in compared.result.differences} == {
        compared.topics[name] for name, case in CASES.items() if case.expected
    }
