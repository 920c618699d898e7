"""Blocks shared out over tasks, and a report's page."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from twinlog.cluster.proof_order import Block
from twinlog.cluster.prover import waves
from twinlog.model.absence import LogRules
from twinlog.model.offsets import PartitionPair, Span
from twinlog.operations.proof_plan import SizedBlock, shared_out

RULES = LogRules(0, compacts=False, expires=True, retention_ms=None, by_size=False, any_deletion=False)


def sized(partition: int, start: int, size: int) -> SizedBlock:
    pair = PartitionPair("orders", UUID(int=1), "nyc.orders", UUID(int=2), partition)
    span = Span(start, start + 1)
    return SizedBlock(Block(pair, (), span, span, RULES, RULES, 9, 9, 1, sole_writer=True), size)


@given(st.lists(st.integers(1, 100), max_size=30), st.integers(1, 8))
def test_every_block_is_in_one_share_and_none_is_much_too_large(sizes: list[int], tasks: int) -> None:
    blocks = [sized(0, number, size) for number, size in enumerate(sizes)]
    shares = shared_out(blocks, tasks)
    assert [block for share in shares for block in share] == [one.block for one in blocks]
    assert len(shares) <= tasks
    weight = {one.block.source.start: one.bytes for one in blocks}
    for share in shares:
        size = sum(weight[block.source.start] for block in share)
        assert size <= sum(sizes) / tasks + 2 * max(sizes)


@given(st.lists(st.integers(0, 3), max_size=20))
def test_a_wave_has_one_block_of_a_partition(partitions: list[int]) -> None:
    blocks = [sized(partition, number, 1).block for number, partition in enumerate(partitions)]
    rounds = waves(blocks)
    assert sorted(block.source.start for wave in rounds for block in wave) == list(range(len(blocks)))
    for wave in rounds:
        assert len({block.pair for block in wave}) == len(wave)
    for partition in set(partitions):
        order = [block.source.start for wave in rounds for block in wave if block.pair.partition == partition]
        assert order == sorted(order), "a partition is read from its beginning on"
