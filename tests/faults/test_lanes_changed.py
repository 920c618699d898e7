"""The number of lanes is changed between runs: no writer of the old layout can write beside the new one."""

from __future__ import annotations

import pytest

from support.crashing import ChildRun, Job, Step
from support.feeding import Feeder
from support.ledger_check import await_settled, check_twins
from support.mirroring import Twins
from twinlog.cluster.copier import LaneReport, Outcome
from twinlog.cluster.copy_order import CopyOrder, carry_out_here
from twinlog.cluster.raw import RawClient
from twinlog.cluster.transaction import TransactionalWriter
from twinlog.errors import FencedError
from twinlog.model.lanes import transactional_id
from twinlog.model.offsets import TopicPartition
from twinlog.wire.own_records import build_batches
from twinlog.wire.restamp import restamp
from twinlog.wire.source import SourcePartition


@pytest.fixture
def flow(flow: Twins, topic: str, feeder: Feeder) -> Twins:
    """Three lanes, copied once, and more to copy."""
    flow = flow.with_settings(lanes=3)
    flow.mirror()
    feeder.feed(4, 500)
    await_settled(flow.source_servers, topic)
    return flow


@pytest.mark.parametrize("lanes", [1, 2, 5])
def test_an_old_lane_is_fenced_before_the_new_layout_writes(flow: Twins, topic: str, lanes: int) -> None:
    with flow.ends().target.raw() as target:
        zombies = [_Zombie(target, flow, topic, lane) for lane in range(3)]

        result = flow.with_settings(lanes=lanes).mirror()

        assert not result.failures
        for zombie in zombies:
            with pytest.raises(FencedError):
                zombie.commit()
    assert flow.record().lanes == lanes
    assert flow.record().retiring_lanes == 0
    check_twins(flow, topic)


def test_a_run_that_died_before_it_fenced_leaves_that_to_the_next(flow: Twins, topic: str) -> None:
    changed = flow.with_settings(lanes=2)
    with flow.ends().target.raw() as target:
        zombie = _Zombie(target, flow, topic, lane=2)
        with ChildRun(Job(changed, "again", Step.BEFORE_FENCING)) as child:
            child.await_killed()
        assert flow.record().retiring_lanes == 3

        changed.mirror(run="again")

        with pytest.raises(FencedError):
            zombie.commit()
    assert flow.record().retiring_lanes == 0
    check_twins(flow, topic)


def test_a_late_task_of_the_old_layout_stops_even_if_its_run_is_tried_again(flow: Twins, topic: str) -> None:
    kept: list[CopyOrder] = []

    def keep(orders: list[CopyOrder]) -> list[LaneReport]:
        kept.extend(orders)
        return []

    def beside_a_late_task(orders: list[CopyOrder]) -> list[LaneReport]:
        late = carry_out_here(kept)
        assert {report.outcome for report in late} == {Outcome.STOPPED}
        return carry_out_here(orders)

    flow.mirror(keep, run="again")

    result = flow.with_settings(lanes=2).mirror(beside_a_late_task, run="again")

    assert {report.outcome for report in result.lanes} == {Outcome.DONE}
    check_twins(flow, topic)


class _Zombie:
    """A writer of a lane, with a record written and not committed; its lane had this partition in the old layout."""

    def __init__(self, target: RawClient, flow: Twins, topic: str, lane: int) -> None:
        self._target = target
        self._writer = TransactionalWriter(
            target, transactional_id(flow.flow.name, lane), timeout_ms=60_000, retries=20
        )
        target.run(self._write(TopicPartition(flow.twin(topic), lane)))

    async def _write(self, partition: TopicPartition) -> None:
        await self._writer.open()
        await self._writer.add_partitions([partition])
        where = SourcePartition(self._target.alias, partition.topic, partition.partition)
        (batch,) = build_batches([(b"key", b"of a zombie")], 0, max_batch_bytes=10_000, target=where)
        stamped = restamp(
            batch,
            producer_id=self._writer.producer_id,
            producer_epoch=self._writer.producer_epoch,
            base_sequence=self._writer.take_sequence(partition, 1),
        )
        metadata = await self._target.metadata([partition.topic])
        leader = metadata.topics[partition.topic].partitions[partition.partition].leader
        await self._writer.produce(leader, {partition: stamped})

    def commit(self) -> None:
        self._target.run(self._writer.commit())
