"""Reconciliations one after the other, of names that are mirrored both ways, of topics that were made anew, beside the
source, and where a log cleaner can't have been."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local.kafka import KafkaClusters
from support.mirroring import Twins, create_topic, producer, twins
from support.reconciling import FULL, Found, differences, reconcile
from support.source_logs import delete_records, delete_topic, fill, recreate, transactional
from support.syncing import both_ways
from support.tampering import dropped, tampering
from twinlog.ledger.proof_state import ProofStore
from twinlog.model.reconciliation import Kind, Verdict
from twinlog.operations import proof_plan, reconcile_look
from twinlog.operations.reconcile import EVERYTHING_NEW, Reconciling, Scope, prove_here

DAY_MS = 24 * 3600 * 1000


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    source, target = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    return twins(source, target, tmp_path, (topic,))


def copy(flow: Twins, topic: str, first: int, count: int = 10) -> None:
    fill(flow.source_servers, topic, range(first, first + count), linger_ms=100)
    flow.mirror()


def test_what_was_proven_is_left_alone_until_its_turn_comes(flow: Twins, topic: str) -> None:
    flow.create(topic)
    copy(flow, topic, 0)
    assert reconcile(flow).records == 10
    assert reconcile(flow).records == 0
    copy(flow, topic, 10)
    assert reconcile(flow).records == 10
    assert reconcile(flow, Scope(topics=r"other-.*")).records == 0
    assert reconcile(flow, FULL).records == 20
    assert reconcile(flow, Scope(since_ms=2**50)).records == 0
    assert reconcile(flow, Scope(since_ms=0)).records == 20
    # A day later than the days within which everything is to be proven.
    store = ProofStore(flow.ledger)
    state = store.load()
    ago_ms = (flow.flow.reconcile_everything_within_days + 1) * DAY_MS
    old = tuple(replace(one, proven_at_ms=one.proven_at_ms - ago_ms) for one in state.stretches)
    store.save(replace(state, stretches=old))
    assert reconcile(flow).records == 20


def test_a_rate_is_kept(flow: Twins, topic: str) -> None:
    flow.create(topic)
    fill(flow.source_servers, topic, ["x" * 10_000] * 150, batch_num_messages=10)
    flow.mirror()
    result = reconcile(flow, Scope(full=True, rate=0.5), tasks=1)
    assert (result.verdict, result.records) == (Verdict.EQUAL, 150)
    # 1.5 MB of each side, at half a MB a second, less what may come at once.
    assert result.seconds > 2.0


def test_a_difference_is_told_until_it_is_gone(flow: Twins, topic: str) -> None:
    flow.create(topic)
    with tampering({flow.twin(topic): dropped(9)}):
        copy(flow, topic, 0)
    for _ in range(2):
        assert differences(reconcile(flow), topic) == [Found(Kind.MISSING, 0, 9, 9)]


def test_what_was_proven_and_is_found_wrong_is_told_until_it_is_gone(flow: Twins, topic: str) -> None:
    """A run that looks at what is new only must not call equal what an earlier one has found."""
    flow.create(topic)
    copy(flow, topic, 0)
    assert reconcile(flow).verdict is Verdict.EQUAL
    fill(flow.target_servers, flow.twin(topic), ["not ours"])
    copy(flow, topic, 10)
    foreign = Found(Kind.FOREIGN, 0, None, 11)
    store = ProofStore(flow.ledger)
    # As if it had been proven before somebody tampered with it.
    stretches = [replace(one, target_end=30) for one in store.load().stretches]
    (whole,) = stretches
    store.save(replace(store.load(), stretches=(replace(whole, source_end=20),)))
    assert reconcile(flow).verdict is Verdict.EQUAL
    for scope in (FULL, EVERYTHING_NEW, EVERYTHING_NEW):
        assert differences(reconcile(flow, scope), topic) == [foreign]


def test_a_target_that_was_cut_is_told_by_the_next_run(flow: Twins, topic: str) -> None:
    flow.create(topic)
    copy(flow, topic, 0)
    copy(flow, topic, 10)
    assert reconcile(flow).verdict is Verdict.EQUAL
    delete_records(flow.target_servers, flow.twin(topic), 4)
    for _ in range(2):
        assert differences(reconcile(flow), topic) == [Found(Kind.MISSING, 0, 0, 0, 4)]


def test_what_is_committed_while_a_run_takes_its_bearings_is_left_to_the_next(
    flow: Twins, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ends of the twins are read before those of the journal, so it may tell of records beyond them."""
    flow.create(topic)
    copy(flow, topic, 0)
    recorded = reconcile_look.bring_up_to_date

    def meanwhile(*arguments: Any) -> Any:
        before = recorded(*arguments)
        copy(flow, topic, 10)
        return replace(recorded(*arguments), data_ends=before.data_ends)

    with monkeypatch.context() as patched:
        patched.setattr(reconcile_look, "bring_up_to_date", meanwhile)
        result = reconcile(flow)
    assert (result.differences, result.records) == ((), 10)
    assert "left to the next run" in result.notes[0]
    result = reconcile(flow)
    assert (result.differences, result.records, result.notes) == ((), 10, ())


def test_a_transaction_that_hangs_on_a_twin_is_told_after_an_hour(
    flow: Twins, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow.create(topic)
    copy(flow, topic, 0)
    hanging = transactional(flow.target_servers)
    hanging.begin_transaction()
    hanging.produce(flow.twin(topic), "never decided")
    assert hanging.flush(30) == 0
    fill(flow.source_servers, topic, range(10, 20), linger_ms=100)
    flow.mirror()
    result = reconcile(flow)
    assert (result.differences, result.records) == ((), 10)
    assert "left to the next run" in result.notes[0]
    with monkeypatch.context() as patched:
        patched.setattr(proof_plan, "LONGEST_TRANSACTION_MS", -60_000)
        found = reconcile(flow)
    assert differences(found, topic) == [Found(Kind.UNREADABLE, 0, 10, 12, 10)]
    hanging.abort_transaction(30)
    assert (reconcile(flow).differences, reconcile(flow, FULL).records) == ((), 20)


def test_a_run_of_some_topics_does_not_call_the_others_equal(flow: Twins, topic: str) -> None:
    flow.create(topic)
    with tampering({flow.twin(topic): dropped(9)}):
        copy(flow, topic, 0)
    assert reconcile(flow).verdict is Verdict.DIFFERENT
    assert reconcile(flow, Scope(topics="other")).verdict is Verdict.EQUAL
    last = ProofStore(flow.ledger).last()
    assert last is not None
    assert last.verdict == "different"


def test_somebody_elses_record_behind_ours_is_found_though_nothing_of_ours_is_new(flow: Twins, topic: str) -> None:
    flow.create(topic)
    copy(flow, topic, 0)
    assert reconcile(flow).verdict is Verdict.EQUAL
    fill(flow.target_servers, flow.twin(topic), ["not ours"])
    for _ in range(2):
        assert differences(reconcile(flow), topic) == [Found(Kind.FOREIGN, 0, None, 11)]


def test_a_digest_that_was_computed_beside_the_source_is_all_that_crosses(flow: Twins, topic: str) -> None:
    flow.create(topic)
    copy(flow, topic, 0)
    reconciling = Reconciling(flow.topology, flow.flow, flow.ends(), flow.ledger)
    result = reconciling.run(FULL, prove_here, beside_source=prove_here)
    assert (result.verdict, result.records, result.bytes_crossed) == (Verdict.EQUAL, 10, 0)
    assert result.bytes_read > 0
    with tampering({flow.twin(topic): dropped(9)}):
        copy(flow, topic, 10)
    result = reconciling.run(FULL, prove_here, beside_source=prove_here)
    assert differences(result, topic) == [Found(Kind.MISSING, 0, 19, 20)]
    assert 0 < result.bytes_crossed < result.bytes_read


def test_names_that_are_mirrored_both_ways_are_equal_both_ways(
    kafka_pair: KafkaClusters, tmp_path: Path, topic: str
) -> None:
    nyc, lon = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    onward, back = both_ways(twins(nyc, lon, tmp_path, (topic,), naming="identity"))
    for servers in (nyc, lon):
        create_topic(servers, topic, 1, {})
    for number in range(3):
        fill(nyc, topic, range(number, number + 5))
        fill(lon, topic, range(100 + number, 107 + number))
        onward.mirror()
        back.mirror()
    onward.mirror()
    result, home = reconcile(onward, FULL), reconcile(back, FULL)
    assert (result.differences, result.tally[Kind.EQUAL], result.tally[Kind.LOCAL]) == ((), 15, 21)
    assert (home.differences, home.tally[Kind.EQUAL], home.tally[Kind.LOCAL]) == ((), 21, 15)
    assert result.gaps["filtered"] == 21


def test_a_source_that_was_made_anew_leaves_what_came_before_proven_by_the_ledger(flow: Twins, topic: str) -> None:
    flow.create(topic)
    copy(flow, topic, 0)
    recreate(flow.source_servers, topic)
    copy(flow, topic, 100, 7)
    result = reconcile(flow, FULL)
    assert (result.differences, result.tally[Kind.EXPIRED], result.tally[Kind.EQUAL]) == ((), 10, 7)


def test_a_twin_that_is_gone_is_missing_until_it_is_copied_again(flow: Twins, topic: str) -> None:
    flow.create(topic)
    copy(flow, topic, 0)
    delete_topic(flow.target_servers, flow.twin(topic))
    found = [one for one in reconcile(flow).differences if one.kind is Kind.MISSING]
    assert [(one.topic, one.source_offset, one.count) for one in found] == [(topic, 0, 10)]
    flow.mirror()
    result = reconcile(flow)
    assert (result.differences, result.tally[Kind.EQUAL]) == ((), 10)


def test_no_log_cleaner_removes_the_last_record_of_a_key(flow: Twins, topic: str) -> None:
    flow.create(topic, cleanup_policy="compact")
    writer = producer(flow.source_servers, linger_ms=100)
    for key in ("a", "b", "a", "c"):
        writer.produce(topic, "value", key)
    assert writer.flush(30) == 0
    with tampering({flow.twin(topic): dropped(3)}):
        flow.mirror()
    result = reconcile(flow)
    assert differences(result, topic) == [Found(Kind.MISSING, 0, 3, 3)]
    assert "no later record there has its key" in result.differences[0].detail


def test_a_flow_that_has_never_run_has_nothing_to_compare(flow: Twins) -> None:
    result = reconcile(flow)
    assert (result.verdict, result.ranges) == (Verdict.EQUAL, 0)
    assert "never run" in result.notes[0]
