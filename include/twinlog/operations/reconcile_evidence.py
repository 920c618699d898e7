"""What the tasks of a reconciliation have answered, and which of it stands once the later keys are looked up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from twinlog.cluster.proof_order import Block, BlockReport, KeyAnswer, KeyLookup, Need, ProofOrder, ProofReport
from twinlog.cluster.raw import RawClient
from twinlog.errors import SparkFailedError
from twinlog.model.offsets import PartitionPair, Span
from twinlog.model.reconciliation import Difference, Kind, joined
from twinlog.operations.log_facts import LogFacts, side_facts

Executor = Callable[[list[ProofOrder]], list[ProofReport]]
"""Has every order carried out: here, or on Spark."""

KEYS_A_LOOKUP = 500_000

Needs = Sequence[tuple[BlockReport, Need]]


@dataclass
class Evidence:
    """Sums over all tasks."""

    blocks: list[BlockReport] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    tally: Counter[Kind] = field(default_factory=Counter)
    source_bytes: int = 0
    target_bytes: int = 0
    crossed_bytes: int = 0
    _disproven: set[tuple[PartitionPair, Span]] = field(default_factory=set)

    @property
    def needs(self) -> Needs:
        return [(block, need) for block in self.blocks for need in block.needs]

    def holds(self, block: BlockReport) -> bool:
        """Whether nothing speaks against the block."""
        return (block.pair, block.source) not in self._disproven

    def take(self, reports: Iterable[ProofReport]) -> None:
        for report in reports:
            self.blocks += report.blocks
            self._count(report)
            for block in report.blocks:
                self.tally.update(block.tally)
                self.differences += block.differences
                if block.differences:
                    self._disproven.add((block.pair, block.source))

    def settle(self, reports: Iterable[ProofReport]) -> None:
        """Decide what was removed by right: a later record has its key, and tell what was not."""
        answers: dict[tuple[PartitionPair, str], list[KeyAnswer]] = {}
        for report in reports:
            self._count(report)
            for answer in report.answers:
                answers.setdefault((answer.pair, answer.side), []).append(answer)
        left = []
        for block, need in self.needs:
            if any(_is_justified(need, answer) for answer in answers.get((block.pair, need.side), ())):
                self.tally[Kind.COMPACTED] += 1
            else:
                self.tally[need.otherwise.kind] += 1
                left.append(need.otherwise)
                self._disproven.add((block.pair, block.source))
        self.differences += joined(left)

    def _count(self, report: ProofReport) -> None:
        self.source_bytes += report.source_bytes
        self.crossed_bytes += report.source_bytes
        self.target_bytes += report.target_bytes


def with_digests(share: Sequence[Block], report: ProofReport) -> list[Block]:
    """The blocks with what the task beside the source has found of each."""
    found = {(one.pair, one.source): one.digests for one in report.blocks}
    missing = [block for block in share if found.get((block.pair, block.source)) is None]
    if missing:
        raise SparkFailedError(f"the task beside the source has not answered for {missing[0].pair.source}; try again")
    return [replace(block, digests=found[block.pair, block.source]) for block in share]


def lookups_for(needs: Needs, source: RawClient, target: RawClient) -> list[KeyLookup]:
    """One pass over the rest of each log that lacks something; `source` and `target` share one loop."""
    wanted: dict[tuple[PartitionPair, str], list[Need]] = {}
    for block, need in needs:
        wanted.setdefault((block.pair, need.side), []).append(need)
    here = source.run(side_facts(source, (pair.source for pair, _ in wanted), is_source=True))
    there = target.run(side_facts(target, (pair.target for pair, _ in wanted), is_source=False))
    lookups = []
    for (pair, side), members in wanted.items():
        logs = here.logs.get(pair.source), there.logs.get(pair.target)
        near, far = logs if side == "source" else logs[::-1]
        if near is None or far is None:
            continue
        keys = sorted({one.key for one in members})
        span = _rest(near, min(one.offset for one in members))
        other = _rest(far, min(one.other_offset for one in members))
        lookups += [
            KeyLookup(pair, side, span, other, frozenset(keys[place : place + KEYS_A_LOOKUP]))
            for place in range(0, len(keys), KEYS_A_LOOKUP)
        ]
    return lookups


def _rest(log: LogFacts, first: int) -> Span:
    start = max(first, log.rules.start)
    return Span(start, max(start, log.end))


def _is_justified(need: Need, answer: KeyAnswer) -> bool:
    return answer.last.get(need.key, -1) > need.offset or answer.tombstones.get(need.key, -1) > need.other_offset
