"""Missing records that a repair has appended to topics of their own: counted, and no difference any more."""

from __future__ import annotations

from collections.abc import Iterator

from twinlog.errors import LedgerError
from twinlog.ledger.repairs import Place, Repairs
from twinlog.ledger.store import Ledger
from twinlog.model.reconciliation import Difference, Kind
from twinlog.model.repair import RECOVERED_TOPIC, less_recovered
from twinlog.operations.reconcile_evidence import Evidence
from twinlog.operations.reconcile_look import Look


def without_recovered(ledger: Ledger, seen: Look, evidence: Evidence) -> Iterator[str]:
    """Take them out of the evidence; answers what there is to say of them, in sentences."""
    if not any(one.kind is Kind.MISSING for one in evidence.differences):
        return
    try:
        recovered = Repairs(ledger).recovered()
    except LedgerError as failed:
        yield f"which of the missing records are recovered is not known: {failed}"
        return
    ids = {
        (one.pair.source_topic, one.pair.partition): one.pair.source_topic_id
        for one in seen.pairs
        if seen.source.is_current(one.pair.source_topic, one.pair.source_topic_id)
    }
    left: list[Difference] = []
    found: dict[str, int] = {}
    for one in evidence.differences:
        source_id = ids.get((one.topic or "", -1 if one.partition is None else one.partition))
        if one.kind is not Kind.MISSING or source_id is None or one.partition is None or one.topic is None:
            left.append(one)
            continue
        rest = list(less_recovered(one, recovered.get(Place(source_id, one.partition), ())))
        found[one.topic] = found.get(one.topic, 0) + one.count - sum(part.count for part in rest)
        left += rest
    evidence.differences = left
    for topic, count in sorted(found.items()):
        if count:
            evidence.tally[Kind.MISSING] -= count
            evidence.tally[Kind.RECOVERED] += count
            yield f"{count:,} records of {topic} that its twin lacks are in the twin's topic {RECOVERED_TOPIC}"
