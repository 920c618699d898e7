"""The copying process is killed at each of its steps, again and again, while the source goes on being written to.

Rounds share clusters, topic and flow, so that each begins with whatever the earlier ones left behind. A round is fixed
by its seed: what is written, at which step, and at which coming to it, the run dies, and who goes on.
"""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass

import pytest

from local.kafka import KafkaClusters
from support.crashing import ONCE, ChildRun, Job, Step
from support.feeding import Feeder
from support.ledger_check import await_settled, check_twins
from support.mirroring import Twins, twins
from support.waiting import await_condition
from twinlog.operations.mirror import new_run_id

PARTITIONS = 5
RECORDS = 600
STEPS = [step for step in Step if step is not Step.BEFORE_GROUPS]
SHORT_LEASE_S = 1.5
QUICK_ROUNDS = 10
ROUNDS = 60


@dataclass
class Site:
    flow: Twins
    topic: str
    feeder: Feeder


@pytest.fixture(scope="module")
def site(kafka_pair: KafkaClusters, tmp_path_factory: pytest.TempPathFactory) -> Site:
    topic = f"kills-{uuid.uuid4().hex[:8]}"
    flow = twins(
        kafka_pair["nyc"].bootstrap_servers,
        kafka_pair["lon"].bootstrap_servers,
        tmp_path_factory.mktemp("kills"),
        (topic,),
        transaction_bytes=4_000,
    )
    flow.create(topic, PARTITIONS)
    return Site(flow, topic, Feeder(flow.source_servers, topic, PARTITIONS))


@pytest.mark.parametrize(
    "seed",
    [pytest.param(seed, marks=[pytest.mark.long] if seed >= QUICK_ROUNDS else []) for seed in range(ROUNDS)],
)
def test_nothing_is_lost_or_doubled(site: Site, seed: int) -> None:
    chance = random.Random(seed)
    site.feeder.feed(seed, RECORDS)
    # Once with each step in turn; a second death before anything was made good comes at a step by chance.
    run = new_run_id()
    _die(site, run, STEPS[seed % len(STEPS)], chance)
    if chance.random() < 0.3:
        site.feeder.feed(seed + ROUNDS, RECORDS)
        _die(site, run, chance.choice([step for step in STEPS if step not in ONCE]), chance)
    _go_on(site, run if chance.random() < 0.7 else new_run_id())

    assert check_twins(site.flow, site.topic) > 0


def _die(site: Site, run: str, step: Step, chance: random.Random) -> None:
    await_settled(site.flow.source_servers, site.topic)
    nth = 1 if step in ONCE else chance.randint(1, 3)
    with ChildRun(Job(site.flow, run, step, nth, lease_s=SHORT_LEASE_S)) as child:
        child.await_killed()


def _go_on(site: Site, run: str) -> None:
    """The run of the same id goes on at once, as a scheduler's next try; another one waits for the lease to end."""

    def has_run() -> bool:
        result = site.flow.mirror(run=run)
        assert not result.failures, result.failures
        return result.skipped is None

    await_condition(has_run, "the killed run's lease to end", 4 * SHORT_LEASE_S)
