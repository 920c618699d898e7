"""Canaries: marked records are written to every partition of a topic of the source, brought over by a real run, and
looked for on the target.

    1  the canary topic is made where it is missing, and a reader of its twin starts at the twin's end
    2  a round of marks is written to the source
    3  the flow is run for that topic alone; where somebody else runs it, we wait for them and try again
    4  the twin is read to the end it had after the run, and what was seen is judged

A mark is lost once the flow's position has passed it and the twin has been read to its end; before, it is late. Both
times of a latency are those of this machine.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.committed import fetch_positions
from twinlog.cluster.copy_order import Executor
from twinlog.cluster.exact_writer import RecordToWrite
from twinlog.cluster.log_offsets import OffsetAt, list_offsets
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import principal_of
from twinlog.errors import ClusterUnreachableError, ConfigurationError
from twinlog.intake.extensions import naming_of
from twinlog.model.canary import Mark, MarkId, Verdict, canary_topic, judge
from twinlog.model.lanes import position_group
from twinlog.model.offsets import TopicPartition
from twinlog.model.topology import Flow
from twinlog.operations.canary_topic import create_canary_topic
from twinlog.operations.mirror import Limits, Mirror, new_run_id
from twinlog.operations.twin_reader import Offsets, TwinReader

DEFAULT_TIMEOUT_S = 120.0
WRITTEN_WITHIN_S = 30.0
TRY_AGAIN_S = 1.0
"""How long a run of somebody else is left alone before ours is tried again."""


@dataclass(frozen=True)
class CanaryResult:
    """One round, and what became of it."""

    flow: str
    round: str
    topic: str
    twin: str
    partitions: int
    verdict: Verdict
    seconds: float
    run: str | None = None
    """Our own run that brought the round; None where somebody else's did, or nobody's."""
    notes: tuple[str, ...] = ()
    """What the last run had to say."""
    skipped: str | None = None
    """Why no canary was written, in a sentence."""

    @property
    def exit_code(self) -> int:
        return 0 if self.verdict.clean else 1

    def to_json(self) -> dict[str, Any]:
        verdict = self.verdict
        return {
            "flow": self.flow,
            "round": self.round,
            "topic": self.topic,
            "twin": self.twin,
            "partitions": self.partitions,
            "sent": verdict.sent,
            "arrived": verdict.arrived,
            **verdict.faults,
            "latency_p50_s": _rounded(verdict.latency_p50_s),
            "latency_p99_s": _rounded(verdict.latency_p99_s),
            "seconds": round(self.seconds, 3),
            "run": self.run,
            "notes": list(self.notes),
            "skipped": self.skipped,
        }


class Canary:
    """A flow whose canaries fly; `mirror` runs it, `source` and `target` are ways to its clusters."""

    def __init__(self, flow: Flow, mirror: Mirror, source: ClusterAccess, target: ClusterAccess) -> None:
        if not flow.canary_enabled:
            raise ConfigurationError(f"{flow.name}: canary.enabled is false, so no canary is written; set it to true")
        self._flow = flow
        self._mirror = mirror
        self._source = source
        self._target = target
        self._topic = canary_topic(flow.source)
        self._twin = naming_of(flow).target_name(self._topic)

    def fly(
        self, execute: Executor, *, tasks: int, records: int | None = None, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> CanaryResult:
        """One round of so many records a partition (the flow's `canary.records`), as `Mirror.run` takes the rest."""
        started = time.monotonic()
        deadline = started + timeout_s
        round_id = new_run_id()
        refused = self._refused()
        if refused is not None:
            nothing = judge([], [], complete=True)
            return CanaryResult(self._flow.name, round_id, self._topic, self._twin, 0, nothing, 0.0, skipped=refused)
        with (
            self._target.raw() as target,
            self._source.raw(beside=target) as source,
            TwinReader(self._target, self._twin, _ends(target, self._twin)) as reader,
        ):
            partitions = source.run(create_canary_topic(source, self._flow, principal_of(self._source.settings)))
            marks = self._send(round_id, partitions, records or self._flow.canary_records)
            written = _ends(source, self._topic)
            while True:
                result = self._mirror.run(execute, tasks=tasks, limits=Limits(topics=frozenset({self._topic})))
                reader.wait_for(lambda seen, _: len(seen) >= len(marks), min(TRY_AGAIN_S, _left_s(deadline)))
                copied = self._copied(source, target, written)
                if copied or not _left_s(deadline):
                    break
            twin_ends = _ends(target, self._twin)
            complete = copied and reader.wait_for(lambda _, read: _reached(read, twin_ends), _left_s(deadline))
            verdict = judge(marks, reader.seen(), complete=complete)
        return CanaryResult(
            self._flow.name,
            round_id,
            self._topic,
            self._twin,
            partitions,
            verdict,
            time.monotonic() - started,
            None if result.skipped else result.run,
            tuple(result.warnings) if result.skipped is None else (result.skipped,),
        )

    def _refused(self) -> str | None:
        """Why the flow would not bring any; another run's lease is waited for."""
        with self._target.raw() as target:
            reason = self._mirror.reason_to_rest(target)
        return None if reason is None else f"{reason}, so no canary is written"

    def _send(self, round_id: str, partitions: int, records: int) -> list[Mark]:
        marks: list[Mark] = []

        def round_of_marks() -> Iterator[RecordToWrite]:
            # Stamped as they are sent, and to all partitions in turns, so that none is sent much later than another.
            for sequence, partition in itertools.product(range(records), range(partitions)):
                mark = Mark(MarkId(self._flow.name, round_id, partition, sequence), int(time.time() * 1000))
                marks.append(mark)
                yield RecordToWrite(TopicPartition(self._topic, partition), *mark.content())

        self._source.exact_writer().write(round_of_marks(), WRITTEN_WITHIN_S)
        return marks

    def _copied(self, source: RawClient, target: RawClient, written: Offsets) -> bool:
        """Whether the flow's positions, whoever ran it, have passed all that was written."""
        topic_id = source.run(source.metadata([self._topic])).topics[self._topic].topic_id
        positions = target.run(fetch_positions(target, position_group(self._flow.name)))
        found = {partition: positions.get(TopicPartition(self._twin, partition.partition)) for partition in written}
        return all(
            position is not None and position.source_topic_id == topic_id and position.offset >= written[partition]
            for partition, position in found.items()
        )


def _ends(client: RawClient, topic: str) -> Offsets:
    """The ends of a topic's partitions; none where there is no such topic yet."""
    view = client.run(client.metadata([topic]))
    partitions = [TopicPartition(topic, number) for number in range(len(view.topics[topic].partitions))]
    listing = client.run(list_offsets(client, view, partitions, OffsetAt.LOG_END))
    if listing.failed:
        # An end that is not known would be passed by any position, and what is late be called lost.
        raise ClusterUnreachableError(
            f"cluster {client.alias}: the ends of {topic} can't be read: {dict(listing.failed)}; try again"
        )
    return listing.offsets


def _reached(read: Offsets, ends: Offsets) -> bool:
    return all(read.get(partition, 0) >= end for partition, end in ends.items())


def _left_s(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
