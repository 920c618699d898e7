"""Which part of a flow's throttle a task has: its own by the plan, and a fair one of what tasks that are done have had.

A task that is done says so on the target: a committed offset of the flow's own group, on the journal's partition of its
first lane, with these words as its metadata:

    done <run> <owner>

What always holds: the shares of the tasks that are not done add up to no more than the whole, since a share is given
away only by who will write no more. One that was fenced or stopped gives nothing away, for another may be at the
same work; one that died is tried again by Spark, and keeps its share until then.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from twinlog.cluster.committed import fetch_committed
from twinlog.cluster.group_offsets import commit_offsets
from twinlog.cluster.raw import RawClient
from twinlog.errors import TwinlogError
from twinlog.model.checkpoints import Commit
from twinlog.model.flow_state import Holder
from twinlog.model.offsets import TopicPartition
from twinlog.model.throttle import share_of_rest

_LOG = logging.getLogger(__name__)


class TaskShares:
    """The share of one task of a run."""

    def __init__(
        self, client: RawClient, *, group: str, journal: str, holder: Holder, task: int, shares: Mapping[int, float]
    ) -> None:
        """`shares` are those of all tasks by the plan; a task goes by the number of its first lane."""
        self._client = client
        self._group = group
        self._journal = journal
        self._words = f"done {holder.run} {holder.owner}"
        self._task = task
        self._shares = shares
        self._done: set[int] = set()

    async def current(self) -> float:
        """The task's part of the throttle now, between 0 and 1."""
        others = {task: self._place(task) for task in self._shares if task not in {self._task, *self._done}}
        if others:
            said = await fetch_committed(self._client, self._group, others.values(), stable=False)
            self._done |= {task for task, place in others.items() if said.get(place, (0, ""))[1] == self._words}
        return share_of_rest(self._shares, self._task, self._done)

    async def give_away(self) -> None:
        """Leave this task's share to the others; it writes no more."""
        if len(self._shares) == 1:
            return
        mark = {self._group: {self._place(self._task): Commit(0, metadata=self._words)}}
        try:
            outcome = (await commit_offsets([self._client], mark))[self._group]
        except TwinlogError as failure:
            # The records are committed, and a run without a throttle needs none of this.
            _LOG.warning("%s: the other tasks don't get this one's share of the throttle: %s", self._group, failure)
            return
        for why in outcome.refused.values():
            _LOG.warning("%s: the other tasks don't get this one's share of the throttle: %s", self._group, why.error)

    def _place(self, task: int) -> TopicPartition:
        return TopicPartition(self._journal, task)
