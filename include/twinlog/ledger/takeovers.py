"""The plans of takeovers, beside the ledger, where the target's side finds them when the source is gone:

    <ledger>/_takeovers/source=nyc/target=lon/20260131T120000Z-1a2b3c4d.json     the plan, for programs
    <ledger>/_takeovers/source=nyc/target=lon/20260131T120000Z-1a2b3c4d.csv      for kafka-consumer-groups
    <ledger>/_takeovers/source=nyc/target=lon/20260131T120000Z-1a2b3c4d.result.json     what came of it

The last 100 of them stay.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from twinlog.errors import LedgerError
from twinlog.ledger.folder import Folder
from twinlog.ledger.store import Ledger
from twinlog.model.takeover import TakeoverPlan, reset_csv

KEPT = 100

_PLAN, _CSV, _RESULT = ".json", ".csv", ".result.json"


class Takeovers:
    """The plans of one flow."""

    def __init__(self, ledger: Ledger) -> None:
        self._folder = Folder(ledger.beside("_takeovers"), ledger.filesystem)

    def write(self, plan: TakeoverPlan) -> None:
        """Keep a plan, and forget the oldest."""
        self._publish(plan.id + _CSV, reset_csv(plan.rows, with_group=True))
        self._publish(plan.id + _PLAN, json.dumps(plan.to_json()))
        for plan_id in self._ids()[:-KEPT]:
            for ending in (_PLAN, _CSV, _RESULT):
                self._folder.remove(plan_id + ending)

    def write_result(self, plan_id: str, result: Mapping[str, Any]) -> None:
        self._publish(plan_id + _RESULT, json.dumps(result))

    def read(self, plan_id: str) -> TakeoverPlan | None:
        """The plan of that id; None where it is not there."""
        said = self._read(plan_id + _PLAN)
        return None if said is None else TakeoverPlan.from_json(said)

    def result(self, plan_id: str) -> dict[str, Any] | None:
        """What came of the plan of that id; None where nobody has carried it out."""
        return self._read(plan_id + _RESULT)

    def csv_path(self, plan: TakeoverPlan) -> str:
        """Where people find the plan for Kafka's own tool."""
        return f"{self._folder.uri}/{plan.id}{_CSV}"

    def plan_path(self, plan: TakeoverPlan) -> str:
        return f"{self._folder.uri}/{plan.id}{_PLAN}"

    def last(self) -> TakeoverPlan | None:
        """The newest plan; None before the first."""
        ids = self._ids()
        return self.read(ids[-1]) if ids else None

    def _publish(self, name: str, text: str) -> None:
        try:
            self._folder.publish(name, text.encode())
        except OSError as failure:
            raise LedgerError(f"{self._folder.uri}/{name} could not be written: {failure}") from failure

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            said: dict[str, Any] = json.loads(self._folder.read(name))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as failure:
            raise LedgerError(f"{self._folder.uri}/{name} can't be read: {failure}") from failure
        return said

    def _ids(self) -> list[str]:
        names = (file.name for file in self._folder.files())
        return sorted(name.removesuffix(_PLAN) for name in names if name.endswith(_PLAN) and not name.endswith(_RESULT))
