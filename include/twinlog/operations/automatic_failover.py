"""A failover that begins by itself, once every probe has found the source gone for long enough. Off unless the flow
says `failover.automatic: true`."""

from __future__ import annotations

import time
from collections.abc import Callable

from twinlog.cluster.access import ClusterAccess
from twinlog.errors import ClusterUnreachableError, ConfigurationError
from twinlog.model.automatic_failover import Agreement, Votes
from twinlog.model.flow_state import FlowRecord, State
from twinlog.model.takeover import Request
from twinlog.model.topology import Flow
from twinlog.operations.failover import Failover
from twinlog.operations.flow_gate import SOURCE_LEADS, record_of
from twinlog.operations.source_probes import SourceProbes
from twinlog.operations.takeover_result import TakeoverResult

Tell = Callable[[str], None]

_BREAKS = 3.0
"""So many intervals between two looks, and nobody knows what was in between."""


class AutomaticFailover:
    """The watch over one flow's source."""

    def __init__(
        self, flow: Flow, source: ClusterAccess, target: ClusterAccess, failover: Failover, tell: Tell = lambda _: None
    ) -> None:
        """`tell` hears of every change of what the probes say."""
        if not flow.failover_automatic:
            raise ConfigurationError(
                f"{flow.name} does not fail over by itself, since failover.automatic is false; `twinlog failover` does "
                "it by hand"
            )
        self._flow = flow
        self._target = target
        self._failover = failover
        self._tell = tell
        self._probes = SourceProbes(flow, source, target)

    def watch(self, for_s: float | None = None) -> TakeoverResult | None:
        """Look again and again, for so long, or for ever, and fail over where that is due; None where it was not.

        While all probes agree that the source is gone, the watch goes on whatever its time.
        """
        started = time.monotonic()
        agreement, before = Agreement(), None
        while True:
            began = time.monotonic()
            votes = self._probes.ask()
            agreement = agreement.after(
                votes, time.monotonic(), longest_break_s=_BREAKS * self._flow.failover_probe_seconds
            )
            if votes != before:
                self._tell(f"{self._flow.name}: {said(votes)}")
                before = votes
            lasted = agreement.has_lasted(self._flow.failover_automatic_after_seconds)
            record = self._record(say=lasted)
            if record is not None and self._was_cut_short(record):
                return self._go_on()
            if record is not None and lasted:
                if record.state in SOURCE_LEADS:
                    return self._fail_over(votes)
                self._tell(f"{self._flow.name} is {record.state}, so there is nothing to watch over")
                return None
            if for_s is not None and agreement.since_s is None and time.monotonic() - started >= for_s:
                return None
            time.sleep(max(0.0, self._flow.failover_probe_seconds - (time.monotonic() - began)))

    def _record(self, *, say: bool) -> FlowRecord | None:
        """The flow's; None where the target does not answer, and so could not take over, which may be said."""
        try:
            with self._target.raw() as target:
                return target.run(record_of(self._flow, target))
        except ClusterUnreachableError as away:
            if say:
                self._tell(f"{self._flow.name}: {away}; it can't take over")
            return None

    def _was_cut_short(self, record: FlowRecord) -> bool:
        """Whether a failover has begun, so long ago that nobody can be carrying it out any more, and not ended."""
        takeover = record.takeover
        if record.state is not State.FAILED_OVER or takeover is None or takeover.ended:
            return False
        return time.time() - takeover.started_at_ms / 1000 > self._flow.failover_automatic_after_seconds

    def _go_on(self) -> TakeoverResult:
        """Whatever the probes say by now: writers are fenced, and groups may have been moved in part."""
        begun = self._failover.unfinished() or self._failover.plan(Request())
        self._tell(f"{self._flow.name}: the {begun.kind} by the plan {begun.id} was cut short; it goes on")
        return self._failover.apply(begun)

    def _fail_over(self, votes: Votes) -> TakeoverResult:
        seconds = self._flow.failover_automatic_after_seconds
        self._tell(f"{self._flow.name}: {said(votes)} for {seconds} s: failing over to {self._flow.target}")
        return self._failover.apply(self._failover.plan(Request()))


def said(votes: Votes) -> str:
    """What each probe says, in words."""
    return "the source is, by " + ", by ".join(f"{name}: {vote}" for name, vote in sorted(votes.items()))
