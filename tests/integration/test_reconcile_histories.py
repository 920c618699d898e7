"""Random lives of topics, mirrored while they go on: never a false alarm, and everything is looked at.

Compaction, retention, deletions at the source, transactions, all compressions, LogAppendTime, and attempts that were
rolled back on the target; all topics of a round share two clusters, one flow and one run.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from local.kafka import KafkaClusters, KafkaSpec, start
from support.ledger_check import log_ends
from support.mirroring import twins
from support.random_logs import RandomLog, killed_attempt
from support.reconciling import DEEP, FULL, reconcile
from support.source_logs import clean_often, delete_records
from twinlog.model.findings import FindingKind
from twinlog.model.reconciliation import Kind
from twinlog.operations.reconcile import EVERYTHING_NEW
from twinlog.operations.reconcile_result import Reconciliation

HISTORIES = 20
ROUNDS = 3


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaClusters]:
    """Two clusters that look several times a second for what retention or the log cleaner may remove."""
    soon = {"log.retention.check.interval.ms": "500", "log.initial.task.delay.ms": "500"}
    specs = [KafkaSpec(name, properties=soon) for name in ("nyc", "lon")]
    with start(specs, tmp_path_factory.mktemp("impatient")) as clusters:
        for name in ("nyc", "lon"):
            clean_often(clusters[name].bootstrap_servers)
        yield clusters


@pytest.mark.parametrize("first", [0, *(pytest.param(20 * n, marks=pytest.mark.long) for n in range(1, 10))])
def test_no_false_alarm(impatient: KafkaClusters, tmp_path_factory: pytest.TempPathFactory, first: int) -> None:
    nyc, lon = (impatient[name].bootstrap_servers for name in ("nyc", "lon"))
    logs = [RandomLog(f"life-{seed}-{uuid.uuid4().hex[:6]}", seed) for seed in range(first, first + HISTORIES)]
    flow = twins(nyc, lon, tmp_path_factory.mktemp("lives"), tuple(log.topic for log in logs))
    for log in logs:
        flow.create(log.topic, **log.settings)
    seen: Counter[Kind] = Counter()
    chance = Random(first)
    for number in range(ROUNDS):
        for log in logs:
            log.live(nyc)
            if number and chance.random() < 0.3:
                killed_attempt(lon, flow.twin(log.topic), chance)
        # What expires before it is copied is lost, and said so: no fault of the copy.
        assert {finding.kind for finding in flow.mirror().findings} <= {FindingKind.EXPIRED}
        seen.update(equal(reconcile(flow, EVERYTHING_NEW)).tally)
    # What retention removes depends on how long all this takes; of one log everything goes, on the source only.
    longest = max((log for log in logs if log.keeps_all), key=lambda log: log.written)
    delete_records(nyc, longest.topic, log_ends(nyc, longest.topic)[0])
    result = equal(reconcile(flow, FULL))
    seen.update(result.tally)
    assert {"aborted", "control"} <= set(result.gaps)
    assert result.account.adds_up
    assert (result.account.holes, result.account.twice) == (0, 0)
    assert result.account.gaps == sum(result.gaps.values())
    assert result.aborted_on_target > 0
    seen.update(equal(reconcile(flow, DEEP)).tally)
    assert {Kind.EQUAL, Kind.COMPACTED, Kind.EXPIRED} <= set(seen), "the lives were too quiet to mean anything"


def equal(result: Reconciliation) -> Reconciliation:
    assert result.differences == (), "\n".join(map(str, result.differences))
    return result
