from __future__ import annotations

import json
from dataclasses import replace

import pytest

from twinlog.errors import ConfigurationError
from twinlog.model.failback import Mode, Stranded
from twinlog.operations.failback_plan import (
    FailbackPlan,
    FailbackRequest,
    StrandedListed,
    StrandedPartition,
)

PLAN = FailbackPlan(
    "20261119T000000Z-1",
    "nyc->lon",
    "lon->nyc",
    "nyc",
    "lon",
    1,
    FailbackRequest(Mode.RESUME, Stranded.APPEND, also=("nyc.new",)),
    "failed over",
    health=("cluster nyc: brokers 3 have not come back; 2 are there",),
    damaged=("gone-0 is not there",),
    stranded=(
        StrandedPartition("orders", "nyc.orders", 0, 8, 10, 2, 0, 9, 12),
        StrandedPartition("orders", "nyc.orders", 1, 8, 10, 2, 3, 9, 9),
    ),
    records=(StrandedListed("orders", 0, 8, 5, "key"), StrandedListed("orders", 0, 9, 6, None)),
    topics={"nyc.orders": "orders", "nyc.new": "new"},
    delete={"gone": "id"},
    anew=("nyc.new",),
    stamps={"orders": "LogAppendTime", "new": None},
    waiting=3,
    notes=("a note",),
)


def test_a_plan_is_read_as_it_was_written() -> None:
    assert FailbackPlan.from_json(json.loads(json.dumps(PLAN.to_json()))) == PLAN
    with pytest.raises(ConfigurationError, match="this twinlog reads 1"):
        FailbackPlan.from_json({**PLAN.to_json(), "version": 2})


def test_where_the_order_changes_is_said_only_of_what_is_appended_behind_something() -> None:
    (change,) = PLAN.order_changes
    assert (change["partition"], change["source_start"], change["target_end"]) == (0, 8, 12)
    assert (
        "the order changes in orders-0: on nyc its offsets 8 to 9 come before what was written on lon, and on lon, "
        "where that has the offsets 9 to 11, they come after it"
    ) in PLAN.sentences
    left = replace(PLAN, request=FailbackRequest())
    assert left.order_changes == []
    assert not [step for step in left.sentences if "order changes" in step]


def test_what_is_lost_deleted_and_made_is_said() -> None:
    steps = " / ".join(PLAN.sentences)
    assert "3 offsets of nyc were removed by retention before they crossed, and are lost" in steps
    assert "DELETED on nyc, and made anew from lon: gone" in steps
    assert "made on nyc, as they were made on lon: nyc.new" in steps
    assert "4 stranded records are kept as Parquet beside the ledger, and are appended on lon" in steps
