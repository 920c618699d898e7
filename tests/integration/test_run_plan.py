"""Looking at a flow before a run, and the steps of a run taken one by one, as Airflow takes them."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from local.kafka import KafkaClusters
from support.mirroring import Twins, producer, twins
from support.reading import Seen
from support.source_logs import fill
from twinlog.cluster.copy_order import carry_out_here
from twinlog.errors import ConfigurationError
from twinlog.model.flow_state import Lease, State
from twinlog.operations.mirror import Limits
from twinlog.operations.run_plan import Step


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def flow(kafka_pair: KafkaClusters, tmp_path: Path, topic: str) -> Twins:
    source, target = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    flow = twins(source, target, tmp_path, (topic,))
    flow.create(topic, partitions=2)
    fill(source, topic, ["a", "b", "c"])
    return flow


def seen(flow: Twins, topic: str) -> list[Seen]:
    return [record for records in flow.read_target(topic).values() for record in records]


def test_a_flow_has_work_before_its_first_run_and_after_new_records_and_none_in_between(
    flow: Twins, topic: str
) -> None:
    first = flow.look()
    assert first.due == (Step.COPY, Step.RECORD)
    assert first.new_topics == (topic,)
    assert "it has never run" in first.sentence

    flow.mirror()
    idle = flow.look()
    assert (idle.due, idle.refused, idle.reasons, idle.findings) == ((), None, (), ())
    assert idle.sentence == f"{flow.flow.name}: nothing to do"

    fill(flow.source_servers, topic, ["d"])
    more = flow.look()
    assert more.due == (Step.COPY, Step.RECORD)
    assert (more.records, more.partitions, more.new_topics) == (1, 1, ())
    assert flow.mirror().recorded.topics == (topic,)
    assert flow.look().due == ()


def test_a_topic_that_grew_and_a_topic_that_is_new_are_work(flow: Twins, topic: str) -> None:
    flow = flow.with_settings(topics=(topic, f"{topic}-.*"))
    flow.mirror()
    flow.create(f"{topic}-more")
    assert flow.look().new_topics == (f"{topic}-more",)
    flow.mirror()
    assert flow.look().due == ()


def test_positions_are_renewed_by_a_flow_that_is_idle(flow: Twins) -> None:
    flow.mirror()
    flow.change_record(lambda record: replace(record, renewed_at_ms=0))
    plan = flow.look()
    assert plan.due == (Step.COPY, Step.RECORD)
    assert plan.reasons == ("positions are to be renewed",)
    flow.mirror()
    assert flow.look().due == ()


def test_checkpoints_are_due_without_anything_to_copy(flow: Twins) -> None:
    flow = flow.with_settings(emit_checkpoints_enabled=True, emit_checkpoints_interval_seconds=1)
    flow.mirror()
    time.sleep(1.1)  # the interval itself
    assert flow.look().due == (Step.CHECKPOINT,)


def test_a_flow_that_may_not_run_says_why(flow: Twins) -> None:
    name = flow.flow.name
    flow.mirror()
    flow.change_record(lambda record: record.moved_to(State.PAUSED, name))
    paused = flow.look()
    assert (paused.state, paused.due) == (State.PAUSED, ())
    assert paused.sentence == f"{name} is paused; nothing was copied"

    lease = Lease("another", "a-host", int(time.time() * 1000) + 60_000)
    flow.change_record(lambda record: replace(record.moved_to(State.ACTIVE, name), lease=lease))
    assert flow.look().refused == f"run another of a-host holds {name}; nothing was copied"
    assert flow.look(run="another").refused is None
    flow.change_record(lambda record: replace(record, lease=replace(lease, expires_at_ms=1)))
    assert flow.look().refused is None


def test_what_a_killed_run_has_committed_is_recorded_by_another_step(flow: Twins, topic: str) -> None:
    since = flow.look().since
    copied = flow.steps().copy(carry_out_here, tasks=2, run="killed")
    assert (copied.skipped, copied.failures, copied.since) == (None, [], since)
    assert flow.record().lease is None
    assert flow.look().due == (Step.RECORD,)

    recorded = flow.steps().record("killed", since)
    assert (recorded.records, recorded.topics) == (3, (topic,))
    assert len(seen(flow, topic)) == 3
    assert flow.look().due == ()
    again = flow.steps().record("killed", since)
    assert again == recorded


def test_a_run_goes_no_further_than_the_time_it_is_given(flow: Twins, topic: str) -> None:
    flow.mirror()
    noon = 1_700_000_000_000
    sender = producer(flow.source_servers)
    # One after the other, so that each is a batch of its own: a batch goes whole.
    for minutes in (-2, -1, 0, 1):
        sender.produce(topic, value=f"at {minutes}", partition=1, timestamp=noon + minutes * 60_000)
        sender.flush()
    limits = Limits(until_ms=noon)
    assert flow.look(limits).records == 2
    assert flow.mirror(limits=limits).recorded.records == 2
    assert flow.look(limits).due == ()
    assert flow.mirror(limits=limits).recorded.records == 0
    assert flow.mirror().recorded.records == 2
    assert flow.mirror(limits=limits).findings == ()


def test_a_topic_that_is_named_and_cannot_be_taken_is_an_error(flow: Twins, topic: str) -> None:
    flow.create(f"{topic}-other")
    with pytest.raises(ConfigurationError, match=f'shows no topic "{topic}s"; did you mean "{topic}"?'):
        flow.look(Limits(topics=frozenset({f"{topic}s"})))
    with pytest.raises(ConfigurationError, match=f'does not mirror the topic "{topic}-other": the flow\'s filter'):
        flow.mirror(limits=Limits(topics=frozenset({f"{topic}-other"})))
