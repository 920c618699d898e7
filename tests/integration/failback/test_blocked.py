"""A failback that keeps producers on the target from writing: not the flow itself, and no longer than it lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from local.kafka import KafkaClusters
from support.failing_back import fail_back, fail_over, failback_of, new_name, numbered, plan_of, values_of, write
from support.guarded import MIRROR, as_mirror
from support.mirroring import Twins, twins
from support.syncing import Hand
from twinlog.cluster.copy_order import carry_out_here
from twinlog.operations.failback_steps import FailbackSteps

EVERYTHING = (
    {"kind": "TOPIC", "name": "*"},
    {"kind": "GROUP", "name": "twinlog", "pattern": "PREFIXED"},
    {"kind": "TRANSACTIONAL_ID", "name": "twinlog.", "pattern": "PREFIXED"},
    {"kind": "BROKER", "name": "kafka-cluster"},
)
ALICE = ("User:alice", "DENY", "WRITE", "LITERAL")


@pytest.fixture
def topic() -> str:
    return new_name()


@pytest.fixture
def flow(guarded: KafkaClusters, tmp_path: Path, topic: str) -> Iterator[Twins]:
    """Failed over, with three written since, run by a user who is no super user."""
    nyc, lon = guarded["nyc"].bootstrap_servers, guarded["lon"].bootstrap_servers
    made = twins(nyc, lon, tmp_path, (topic,), sync_topic_acls_enabled=False)
    source, target = Hand(nyc), Hand(lon)
    made.create(topic)
    made = as_mirror(made, guarded)
    write(nyc, topic, numbered("a", 4))
    with ExitStack() as granted:
        for hand in (source, target):
            for what in EVERYTHING:
                granted.enter_context(hand.allowing(MIRROR, "ALL", **what))
        assert made.mirror().failures == []
        for user in ("alice", "*"):
            target.allow(user, "WRITE", made.twin(topic))
        fail_over(made)
        write(lon, made.twin(topic), numbered("b", 3))
        yield made


def test_the_flow_itself_goes_on_writing_and_everybody_does_afterwards(
    flow: Twins, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lon, twin = Hand(flow.target_servers), flow.twin(topic)
    over, seen = FailbackSteps.over, []

    def while_denied(self: FailbackSteps) -> None:
        seen.append((*ALICE, twin) in lon.acls(twin))
        write(flow.source_servers, topic, ["new"])
        over(self)

    monkeypatch.setattr(FailbackSteps, "over", while_denied)
    result = fail_back(flow, block_writes=True)
    assert (seen, result.figures["blocked"]) == ([True], 1)
    assert any("everybody is allowed to write" in warning for warning in result.warnings)
    assert (*ALICE, twin) not in lon.acls(twin)
    assert values_of(flow.target_servers, twin) == [*numbered("a", 4), *numbered("b", 3), "new"]


def test_who_was_denied_may_write_again_where_the_failback_is_abandoned(
    flow: Twins, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lon, twin = Hand(flow.target_servers), flow.twin(topic)
    with monkeypatch.context() as patched:
        patched.setattr(FailbackSteps, "over", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            failback_of(flow).carry_out(plan_of(flow, block_writes=True), carry_out_here, tasks=1)
    assert (*ALICE, twin) in lon.acls(twin)
    failback_of(flow).abandon()
    assert (*ALICE, twin) not in lon.acls(twin)


def test_who_may_not_block_writes_is_told_before_anything_begins(
    flow: Twins,
) -> None:
    target = Hand(flow.target_servers)
    target.revoke(MIRROR, "ALL", "kafka-cluster", kind="BROKER")
    try:
        (refused,) = plan_of(flow, block_writes=True).refused
    finally:
        target.allow(MIRROR, "ALL", "kafka-cluster", kind="BROKER")
    assert "is not allowed DESCRIBE on the cluster, so writes stay open" in refused
