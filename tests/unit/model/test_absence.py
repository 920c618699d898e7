"""What may rightly be gone from a log, and what may not."""

from __future__ import annotations

import pytest

from twinlog.model.absence import CLOCKS_APART_MS, LogRules, Reason
from twinlog.model.record_comparison import RecordFact

NOW_MS = 1_000_000_000
OTHER = RecordFact(5, NOW_MS - 1_000, b"key", b"value", b"")


def rules(**changed: object) -> LogRules:
    values = {
        "start": 0,
        "compacts": False,
        "expires": True,
        "retention_ms": None,
        "by_size": False,
        "any_deletion": False,
        **changed,
    }
    return LogRules(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (rules(), Reason.NONE),
        (rules(compacts=True), Reason.LATER_KEY_NEEDED),
        (rules(start=6), Reason.DELETED),
        (rules(start=6, any_deletion=True), Reason.EXPIRED),
        (rules(start=6, by_size=True), Reason.EXPIRED),
        (rules(start=6, by_size=True, expires=False), Reason.DELETED),
        (rules(start=6, retention_ms=2_000 + CLOCKS_APART_MS), Reason.DELETED),
        (rules(start=6, retention_ms=500), Reason.EXPIRED),
        (rules(start=6, retention_ms=500, expires=False, compacts=True), Reason.DELETED),
    ],
)
def test_the_logs_own_rules_explain_what_it_lacks(log: LogRules, reason: Reason) -> None:
    assert log.why_absent(5, OTHER, now_ms=NOW_MS) is reason


@pytest.mark.parametrize("gone", [OTHER._replace(key=None), OTHER._replace(value=None)], ids=["no key", "tombstone"])
def test_a_cleaner_removes_what_has_no_key_and_old_tombstones(gone: RecordFact) -> None:
    assert rules(compacts=True).why_absent(5, gone, now_ms=NOW_MS) is Reason.COMPACTED


def test_a_record_without_a_time_may_have_expired_at_any_time() -> None:
    assert rules(retention_ms=2**40).may_have_expired(-1, NOW_MS)
