"""The runs of a failback, in both directions, and the seam between them.

A run that finds another one under way waits for it: the way home shares its lease with the topology's own flow of that
direction, which goes on by its schedule.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from twinlog.cluster.copy_order import Executor
from twinlog.cluster.refusals import principal_of
from twinlog.errors import FailbackError
from twinlog.ledger.store import Ledger
from twinlog.model.findings import Finding, FindingKind
from twinlog.model.flow_state import State
from twinlog.model.lanes import journal_topic
from twinlog.operations.directions import with_way_home
from twinlog.operations.failback_plan import FailbackPlan
from twinlog.operations.flow_gate import record_of
from twinlog.operations.internal_topics import create_internal_topics
from twinlog.operations.mirror import Limits, Mirror
from twinlog.operations.mirror_result import MirrorResult
from twinlog.operations.recording import rebuild_ledger
from twinlog.operations.seam import Seam

if TYPE_CHECKING:
    from twinlog.operations.failback import Failback

LOOK_AGAIN_S = 1.0
"""While somebody else's run is under way."""


class FailbackRuns:
    """What copies, while one plan is carried out; figures and warnings are the failback's."""

    def __init__(self, failback: Failback, plan: FailbackPlan, execute: Executor, tasks: int) -> None:
        self.figures: dict[str, Any] = {}
        self.warnings: list[str] = []
        self.anew = frozenset(plan.anew)
        self.topology, self.way_home = with_way_home(failback.topology, failback.flow, self.anew)
        self.home_ledger = Ledger(self.topology.ledger_for(self.way_home), self.way_home.source, self.way_home.target)
        self._failback = failback
        self._plan = plan
        self._execute = execute
        self._tasks = tasks

    def home(self) -> MirrorResult:
        """One run of the way home."""
        mirror = Mirror(
            self.topology, self.way_home, self._failback.home_ends, self.home_ledger, show=self._failback.show
        )
        result = self._run(mirror, set(self._plan.topics), lambda: self._home_rests(mirror), self.way_home.name)
        # A topic that was rebuilt once more is not the one that was filled then, and the seam sees to the rest.
        findings = (
            one
            for one in result.findings
            if one.kind is not FindingKind.TARGET_REPLACED or one.partition.topic not in self.anew
        )
        _demand(replace(result, findings=tuple(findings)).failures, self.way_home.name)
        self.figures["came_home"] = self.figures.get("came_home", 0) + result.recorded.records
        self.warnings += [note for note in result.notes if note]
        return result

    def onward(self, topics: Collection[str]) -> MirrorResult:
        """One run of the flow itself, of these topics of the source, while it fails back."""
        failback = self._failback
        flow = failback.flow
        mirror = Mirror(
            failback.topology, flow, failback.ends, failback.ledger, show=failback.show, state=State.FAILING_BACK
        )
        result = self._run(mirror, set(topics), self._failback_is_over, flow.name)
        _demand(replace(result, findings=tuple(filter(self._unexpected, result.findings))).failures, flow.name)
        self.figures["appended"] = self.figures.get("appended", 0) + result.recorded.records
        return result

    def _unexpected(self, found: Finding) -> bool:
        """Retention may go on, and of the topics that are made anew this failback knows that they are."""
        anew = {self._plan.topics[twin] for twin in self.anew}
        return found.kind is not FindingKind.EXPIRED and not (
            found.kind is FindingKind.RECREATED and found.partition.topic in anew
        )

    def onward_to_the_end(self, topics: Collection[str]) -> None:
        """Until all is copied that is on the source when this begins, whoever writes there meanwhile."""
        if topics:
            failback = self._failback
            seam = Seam(failback.flow, failback.ends, sorted(topics), quiet_s=0.0)
            seam.reach(lambda: self.onward(topics), self._deadline())

    def cut(self) -> None:
        """Until nobody writes on the target any more, and the last of it is home."""
        failback = self._failback
        seam = Seam(self.way_home, failback.home_ends, sorted(self._plan.topics), failback.quiet_s)
        seam.cut(self.home, self._deadline())

    def fit_ledger(self) -> None:
        """A cluster that was built anew has another journal of the way home, and what the ledger has of the one that is
        gone tells of topics that are gone too."""
        home, access = self.way_home, self._failback.home_ends.target
        name = journal_topic(home.source, home.target)
        with access.raw() as source:
            view = source.run(source.metadata())
            source.run(create_internal_topics(source, home, home.lanes, view, principal_of(access.settings)))
            journal = source.run(source.metadata([name])).topics[name]
        if self.home_ledger.mark().journal_id not in ("", str(journal.topic_id)):
            rebuild_ledger(self.home_ledger, home, access)

    def _run(self, mirror: Mirror, topics: set[str], rests: Callable[[], str | None], flow_name: str) -> MirrorResult:
        """One run as soon as no other is under way; `rests` tells why none will come to pass at all.

        Every try of a failback runs under its plan's name: one that was killed is in nobody's way.
        """
        deadline = self._deadline()
        # All there is at once: a budget would count what is passed over, the whole history of a topic among it.
        limits = Limits(topics=frozenset(topics), own_budget=True)
        while True:
            result = mirror.run(self._execute, tasks=self._tasks, limits=limits, run=self._run_name)
            if result.skipped is None:
                return result
            if (why := rests()) is not None or time.monotonic() > deadline:
                raise FailbackError(f"{flow_name} could not run: {why or result.skipped}")
            self._failback.say(f"{result.skipped}; waiting for it")
            time.sleep(LOOK_AGAIN_S)

    @property
    def _run_name(self) -> str:
        return f"failback-{self._plan.id}"

    def _home_rests(self, mirror: Mirror) -> str | None:
        with self._failback.home_ends.target.raw() as source:
            return mirror.reason_to_rest(source)

    def _failback_is_over(self) -> str | None:
        flow = self._failback.flow
        with self._failback.ends.target.raw() as target:
            record = target.run(record_of(flow, target))
        ours = record.failback is not None and record.failback.id == self._plan.id
        return None if record.state is State.FAILING_BACK and ours else f"{flow.name} is {record.state}"

    def _deadline(self) -> float:
        return time.monotonic() + self._failback.seam_within_s


def _demand(failures: list[str], flow: str) -> None:
    if failures:
        raise FailbackError(f"{flow}: {'; '.join(failures)}")
