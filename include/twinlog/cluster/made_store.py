"""What Twinlog has made on a flow's target, kept there."""

from __future__ import annotations

from collections.abc import Callable

from twinlog.cluster.kept_values import KeptValues, Values
from twinlog.cluster.raw import RawClient
from twinlog.model.made import Made, from_values, made_topic, made_transactional_id, to_values


class MadeStore:
    """The memory of the flow from `source` to `target`, by a client of the target."""

    def __init__(self, client: RawClient, source: str, target: str) -> None:
        self.topic = made_topic(source, target)
        self._where = f"cluster {client.alias}, topic {self.topic}"
        self._kept = KeptValues(client, self.topic, made_transactional_id(source, target))

    async def read(self) -> Made:
        return from_values(await self._kept.read(), self._where)

    async def change(self, decide: Callable[[Made], Made]) -> None:
        """Make it what `decide` makes of it; keys that a newer twinlog added stay."""

        def changed(values: Values) -> Values | None:
            before = from_values(values, self._where)
            after = decide(before)
            if after == before:
                return None
            known = to_values(before)
            foreign = {key: value for key, value in values.items() if key not in known}
            return {**foreign, **to_values(after)}

        await self._kept.change(changed)
