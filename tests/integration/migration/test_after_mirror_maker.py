"""Going on where MirrorMaker 2 itself was stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.ledger_check import check_twins, ledger_rows
from support.migrating import migrate
from support.mirror_maker import mirror_maker
from support.mirroring import Twins
from support.reading import read_committed
from support.source_logs import fill
from support.syncing import Hand
from support.waiting import await_condition
from twinlog.cluster.groups import list_groups
from twinlog.errors import AdoptionError

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

RECORDS, LATER = 700, 50


def test_what_it_copied_is_not_copied_again(flow: Twins, topic: str, tmp_path: Path) -> None:
    flow.create(topic, 3)
    for partition in range(3):
        fill(flow.source_servers, topic, range(RECORDS), partition, compression_type="lz4", batch_num_messages=40)
    twin = flow.twin(topic)
    with mirror_maker(flow, topic, tmp_path) as running:

        def copied() -> bool:
            assert running.running, running.last_lines()
            if twin not in Hand(flow.target_servers).topics():
                return False
            return sum(map(len, read_committed(flow.target_servers, twin).values())) >= 3 * RECORDS

        await_condition(copied, "MirrorMaker 2 has copied all", 120)
        with pytest.raises(AdoptionError, match=r"MirrorMaker 2 is running: its group .* has members"):
            migrate(flow, adopts="mm2")
    for partition in range(3):
        fill(flow.source_servers, topic, range(LATER), partition)
    # Its workers are members of their group for as long as nobody has missed them.
    await_condition(lambda: not _has_members(flow), "its group is empty", 60)

    done = migrate(flow, adopts="mm2")

    assert done.failures == ()
    assert done.adopted == 3 * RECORDS
    assert done.backfilled.records == 3 * LATER
    assert check_twins(flow, topic) == 3 * (RECORDS + LATER)
    rows = [row for row in ledger_rows(flow, topic) if row["run"].startswith("adopt-")]
    assert sum(row["count"] for row in rows) == 3 * RECORDS


def _has_members(flow: Twins) -> bool:
    name = f"{flow.flow.source}-mm2"
    with flow.ends().target.raw() as target:
        group = target.run(list_groups(target)).get(name)
    return group is not None and group.active
