"""A flow's record on the target cluster: read it, and change it so that of two who try at once only one succeeds.

A change returns once the new record is visible, so whoever fences the lanes next finds writers that will see it; for
the rest, what holds of `KeptValues` holds here.
"""

from __future__ import annotations

from collections.abc import Callable

from twinlog.cluster.kept_values import KeptValues, Values
from twinlog.cluster.raw import RawClient
from twinlog.model.flow_state import FlowRecord, from_records, to_records
from twinlog.model.lanes import state_transactional_id


class FlowStore:
    """The record of one flow, in its state topic."""

    def __init__(self, client: RawClient, flow: str, topic: str) -> None:
        self._where = f"cluster {client.alias}, topic {topic}"
        self._kept = KeptValues(client, topic, state_transactional_id(flow))

    async def read(self) -> FlowRecord:
        """The record as it is committed now."""
        return from_records(await self._kept.read(), self._where)

    async def change(self, decide: Callable[[FlowRecord], FlowRecord | None]) -> FlowRecord | None:
        """Write what `decide` makes of the record, or nothing where it answers None; the answer is handed back."""
        answer: FlowRecord | None = None

        def changed(values: Values) -> Values | None:
            nonlocal answer
            before = from_records(dict(values), self._where)
            answer = decide(before)
            return None if answer is None or answer == before else {**values, **to_records(answer)}

        await self._kept.change(changed)
        return answer
