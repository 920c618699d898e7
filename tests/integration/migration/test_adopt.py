"""Going on where MirrorMaker 2 stopped: its topics are written as it would, and read as any mirror's."""

from __future__ import annotations

import pytest

from support.feeding import Feeder
from support.groups import staying
from support.ledger_check import await_settled, check_twins, flow_positions, ledger_rows
from support.migrating import copy_as_mirror_maker, leave_offset_syncs, migrate, migrating, migration, stamped
from support.mirroring import Twins, create_topic
from support.reading import read_with_offsets
from support.source_logs import COMPACTED, clean_often, compacted_log, delete_records, delete_topic, fill
from twinlog.errors import AdoptionError
from twinlog.model.migration import Phase
from twinlog.model.naming import offset_syncs_topic
from twinlog.model.offsets import TopicPartition
from twinlog.operations.migrate import Asked

ALL = 10**9


@pytest.fixture(autouse=True)
def notes(flow: Twins) -> None:
    create_topic(flow.source_servers, offset_syncs_topic(flow.flow), 1, {"cleanup.policy": "compact"})


def test_nothing_is_copied_again_and_the_ledger_is_exact(flow: Twins, topic: str) -> None:
    flow.create(topic, 3)
    feeder = Feeder(flow.source_servers, topic, 3)
    feeder.feed(1, 900)
    await_settled(flow.source_servers, topic)
    here = read_with_offsets(flow.source_servers, topic)
    # Two thirds of each partition, and nothing of the last.
    ends = {number: list(here[number])[len(here[number]) * 2 // 3] for number in range(2)}
    copied = copy_as_mirror_maker(flow, topic, {0: [(0, ends[0])], 1: [(0, ends[1])], 2: []})
    feeder.feed(2, 100)

    done = migrate(flow, adopts="mm2")

    assert (done.failures, done.notes) == ((), ())
    assert done.adopted == sum(map(len, copied.values())) > 200
    records = check_twins(flow, topic)
    assert done.backfilled.records == records - done.adopted
    rows = [row for row in ledger_rows(flow, topic) if row["run"].startswith("adopt-")]
    assert sum(row["count"] for row in rows) == done.adopted


def test_of_records_that_were_written_twice_the_one_to_one_end_is_adopted(flow: Twins, topic: str) -> None:
    flow.create(topic, 2)
    for partition in range(2):
        fill(flow.source_servers, topic, [f"{partition} {number}" for number in range(200)], partition)
    copy_as_mirror_maker(flow, topic, {0: [(0, 150), (120, 200)], 1: [(0, 180)]})
    leave_offset_syncs(flow, topic, {0: (130, 160)})

    done = migrate(flow, adopts="mm2")

    assert done.adopted == 80 + 180
    note, unproven = done.notes
    assert "150 records on" in unproven
    assert note.startswith(f"{topic}-0: only the last 80 records of its twin are one to one with the source's")
    assert "from target offset 150 on are written more than once" in note
    doubled = [row for row in ledger_rows(flow, topic) if row["partition"] == 0]
    assert (doubled[0]["source_start"], doubled[0]["target_start"]) == (120, 150)
    assert flow.read_target(topic)[1] == flow.read_source(topic)[1]
    assert len(flow.read_target(topic)[0]) == 230


@pytest.mark.parametrize(
    ("left", "says"),
    [
        ("strange record at the end", "the last 1 records of its twin are not on the source"),
        ("another note", "MirrorMaker 2 noted that source offset 7 became 9, and the logs say 9"),
        ("all alike", "its records are too much alike"),
    ],
)
def test_what_is_not_the_source_s_is_refused_and_copied_only_into_a_new_twin(
    flow: Twins, topic: str, left: str, says: str
) -> None:
    flow.create(topic)
    alike = left == "all alike"
    stamped(flow.source_servers, topic, ["same"] * 50 if alike else range(50), 1_700_000_000_000)
    copy_as_mirror_maker(flow, topic, {0: [(10, 30)] if alike else [(0, 30)]})
    if left == "another note":
        leave_offset_syncs(flow, topic, {0: (7, 9)})
    if left == "strange record at the end":
        fill(flow.target_servers, flow.twin(topic), ["strange"])
    adopts = "other" if alike else "mm2"

    for _ in range(2):
        with pytest.raises(AdoptionError, match=rf"{topic}-0: not adopted: .*{says}.* would hold everything twice"):
            migrate(flow, adopts=adopts)
    assert migration(flow).phase is Phase.SETTINGS
    assert flow_positions(flow) == {}

    delete_topic(flow.target_servers, flow.twin(topic))
    assert migrate(flow, adopts=adopts).backfilled.records == 50
    assert check_twins(flow, topic) == 50


def test_what_the_source_has_expired_and_compacted_is_told_and_the_rest_adopted(flow: Twins, topic: str) -> None:
    compacted = f"{topic}.compacted"
    flow.create(topic)
    flow.create(compacted, **{name.replace(".", "_"): value for name, value in COMPACTED.items()})
    clean_often(flow.source_servers)
    fill(flow.source_servers, topic, range(100))
    compacted_log(flow.source_servers, compacted)
    copy_as_mirror_maker(flow, topic, {0: [(0, 80)]})
    copy_as_mirror_maker(flow, compacted, {0: [(0, ALL)]})
    delete_records(flow.source_servers, topic, 50)

    done = migrate(flow, adopts="mm2")

    assert done.failures == ()
    assert (
        f"{topic}-0: the first 50 records of its twin are on the source no longer, and were not verified" in done.notes
    )
    positions = flow_positions(flow)
    assert positions[TopicPartition(flow.twin(topic), 0)].offset == 100
    first = next(row for row in ledger_rows(flow, topic) if row["run"].startswith("adopt-"))
    assert (first["source_start"], first["target_start"], first["count"]) == (50, 50, 30)
    assert check_twins(flow, compacted, {0: ledger_rows(flow, compacted)[0]["source_start"]})
    assert any("50 records on" in note and f"were not compared: {topic}-0" in note for note in done.notes)
    assert sum(row["gap_compacted"] for row in ledger_rows(flow, compacted)) > 0


def test_what_another_mirror_has_copied_is_not_copied_beside_it(flow: Twins, topic: str) -> None:
    flow.create(topic)
    fill(flow.source_servers, topic, range(30))
    copy_as_mirror_maker(flow, topic, {0: [(0, 20)]})

    with pytest.raises(AdoptionError, match=rf"{topic}-0 hold records that .* has not copied.*--adopt"):
        migrate(flow)
    assert flow_positions(flow) == {}

    assert migrate(flow, adopts="mm2").adopted == 20
    assert check_twins(flow, topic) == 30


def test_the_other_mirror_must_be_stopped(flow: Twins, topic: str) -> None:
    flow.create(topic)
    fill(flow.source_servers, topic, range(10))
    copy_as_mirror_maker(flow, topic, {0: [(0, 10)]})
    moving = migrating(flow)
    moving.begin(Asked(adopts="mm2"))

    with (
        staying(flow.target_servers, f"{flow.flow.source}-mm2", flow.twin(topic)),
        pytest.raises(AdoptionError, match=r"MirrorMaker 2 is running: its group .* has members"),
    ):
        moving.settings()

    adoption, _ = moving.settings()
    assert [one.records for one in adoption.adopted] == [10]
