"""Consumer groups that move: real consumers read a part on the source, are checkpointed, and read on on the target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import pytest
from kafka.protocol.consumer import OffsetFetchRequest

from support.group_logs import all_of, filled
from support.groups import (
    checkpoint,
    commit,
    commit_all,
    commits,
    committed,
    delete_group,
    planning,
    read,
    share,
    staying,
)
from support.mirroring import Twins, producer
from support.source_logs import fill, recreate
from support.syncing import both_ways
from twinlog.cluster.group_offsets import MANY_GROUPS_VERSION
from twinlog.cluster.raw import RawClient
from twinlog.model.checkpoints import Reason
from twinlog.model.naming import checkpoints_topic
from twinlog.operations.checkpoint import checkpoint_store
from twinlog.operations.checkpoint_writing import CheckpointWriting
from twinlog.operations.readiness import ReadinessTables
from twinlog.operations.standings import Standing


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_reads_on_exactly_where_it_stopped(flow: Twins, topic: str, group: str, protocol: str) -> None:
    filled(flow, topic)
    everything = all_of(flow.source_servers, topic)
    first = read(flow.source_servers, group, topic, 70, group_protocol=protocol)
    assert flow.mirror().failures == []

    result = checkpoint(flow)
    rest = read(flow.target_servers, group, flow.twin(topic), group_protocol=protocol)

    assert result.standings.groups == {group: True}
    assert result.commits == len(committed(flow.source_servers, group, topic))
    assert first.total() == 70
    assert first + rest == everything


def test_what_is_written_while_the_group_moves_is_read_once(flow: Twins, topic: str, group: str) -> None:
    filled(flow, topic)
    read(flow.source_servers, group, topic)
    flow.mirror()
    checkpoint(flow)
    fill(flow.source_servers, topic, ["later"], 1)
    flow.mirror()

    assert read(flow.target_servers, group, flow.twin(topic)) == Counter([(1, b"later")])


def test_a_rewind_on_the_source_is_followed(flow: Twins, topic: str, group: str) -> None:
    filled(flow, topic, partitions=1)
    read(flow.source_servers, group, topic)
    flow.mirror()
    checkpoint(flow)
    far = committed(flow.target_servers, group, flow.twin(topic))
    commit(flow.source_servers, group, topic, {0: 5})

    result = checkpoint(flow)

    assert committed(flow.target_servers, group, flow.twin(topic)) == {0: 5}
    assert far[0] > 5
    assert (result.records, result.commits) == (1, 1)
    again = checkpoint(flow)
    assert (again.records, again.commits) == (0, 0)


def test_a_position_that_the_group_made_itself_on_the_target_stays(flow: Twins, topic: str, group: str) -> None:
    filled(flow, topic, partitions=1)
    read(flow.source_servers, group, topic, 10)
    flow.mirror()
    checkpoint(flow)
    read(flow.target_servers, group, flow.twin(topic), 15)
    own = committed(flow.target_servers, group, flow.twin(topic))

    kept = checkpoint(flow)
    commit(flow.source_servers, group, topic, {0: 2})
    rewound = checkpoint(flow)
    read(flow.source_servers, group, topic)
    caught_up = checkpoint(flow)

    assert [row.reason for row in kept.standings.rows] == [Reason.OWN_POSITION]
    assert [row.reason for row in rewound.standings.rows] == [Reason.OWN_POSITION]
    assert (kept.commits, rewound.commits, caught_up.commits) == (0, 0, 1)
    assert own == {0: 25}
    assert committed(flow.target_servers, group, flow.twin(topic))[0] > 25


def test_a_position_without_an_epoch_stays_that_equals_an_earlier_checkpoint(
    flow: Twins, topic: str, group: str
) -> None:
    filled(flow, topic, partitions=1)
    twin = flow.twin(topic)
    flow.mirror()
    for offset in (30, 10):
        commit(flow.source_servers, group, topic, {0: offset})
        assert checkpoint(flow).commits == 1
    commit(flow.target_servers, group, twin, {0: 30})

    result = checkpoint(flow)

    assert [(row.reason, row.offset) for row in result.standings.rows] == [(Reason.OWN_POSITION, 30)]
    assert committed(flow.target_servers, group, twin) == {0: 30}


def after_the_records(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """Something that happens between the records of a pass and its commits, once."""
    write_records = CheckpointWriting.write_records

    def written(self: CheckpointWriting, rows: Sequence[Standing]) -> int:
        records = write_records(self, rows)
        monkeypatch.undo()
        happens()
        return records

    monkeypatch.setattr(CheckpointWriting, "write_records", written)


def test_a_position_that_the_group_makes_during_the_pass_stays(
    flow: Twins, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(flow, topic, partitions=2)
    twin = flow.twin(topic)
    commit(flow.source_servers, group, topic, {0: 10, 1: 10})
    flow.mirror()
    after_the_records(monkeypatch, lambda: commit(flow.target_servers, group, twin, {0: 20}))

    result = checkpoint(flow)
    commit(flow.source_servers, group, topic, {0: 5, 1: 5})
    rewound = checkpoint(flow)

    assert [row.reason for row in result.standings.rows] == [Reason.OWN_POSITION, None]
    assert (result.commits, rewound.commits) == (1, 1)
    assert committed(flow.target_servers, group, twin) == {0: 20, 1: 5}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_that_comes_alive_on_the_target_during_the_pass_is_untouched(
    flow: Twins, topic: str, group: str, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its offsets are as they were, so that only its coordinator can tell."""
    filled(flow, topic, partitions=1)
    twin = flow.twin(topic)
    commit(flow.source_servers, group, topic, {0: 10})
    flow.mirror()
    with ExitStack() as stack:
        joins = staying(flow.target_servers, group, twin, group_protocol=protocol)
        after_the_records(monkeypatch, lambda: stack.enter_context(joins))

        result = checkpoint(flow)

        assert [(row.reason, row.ready) for row in result.standings.rows] == [(Reason.ACTIVE, False)]
        assert result.commits == 0
        assert commits(flow.target_servers, group) == []

    assert checkpoint(flow).commits == 1
    assert committed(flow.target_servers, group, twin) == {0: 10}


def test_a_pass_that_was_overtaken_commits_nothing(
    flow: Twins, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(flow, topic, partitions=1)
    commit(flow.source_servers, group, topic, {0: 10})
    flow.mirror()

    def begin_another() -> None:
        with flow.ends().target.raw() as target:
            target.run(checkpoint_store(flow.flow, target).open())

    after_the_records(monkeypatch, begin_another)

    result = checkpoint(flow)

    assert "overtaken" in str(result.skipped)
    assert commits(flow.target_servers, group) == []
    assert checkpoint(flow).commits == 1


def test_commits_on_a_topic_that_was_made_anew_are_not_translated(flow: Twins, topic: str, group: str) -> None:
    filled(flow, topic, partitions=1)
    flow.mirror()
    recreate(flow.source_servers, topic)
    fill(flow.source_servers, topic, range(5))
    commit(flow.source_servers, group, topic, {0: 3})

    result = checkpoint(flow)
    planned = planning(flow).plan(group)

    assert [row.reason for row in result.standings.rows] == [Reason.RECREATED]
    assert [row["reason"] for row in planned.left_out] == [Reason.RECREATED]
    assert commits(flow.target_servers, group) == []


def test_a_group_that_is_gone_from_the_source_is_told_of_once_and_counted(flow: Twins, topic: str, group: str) -> None:
    filled(flow, topic, partitions=1)
    commit(flow.source_servers, group, topic, {0: 10})
    flow.mirror()
    checkpoint(flow)
    delete_group(flow.source_servers, group)

    shown, first, second = checkpoint(flow, dry_run=True), checkpoint(flow), checkpoint(flow)
    planned = planning(flow).plan(group)

    for result in (shown, first):
        (note,) = result.standings.notes
        assert group in note
    assert second.standings.notes == ()
    assert [result.to_json()["groups_gone"] for result in (shown, first, second)] == [1, 1, 1]
    assert group in planned.notes[0]
    assert committed(flow.target_servers, group, flow.twin(topic)) == {0: 10}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_that_is_active_on_the_target_is_untouched(flow: Twins, topic: str, group: str, protocol: str) -> None:
    filled(flow, topic)
    read(flow.source_servers, group, topic, 30)
    flow.mirror()
    with staying(flow.target_servers, group, flow.twin(topic), group_protocol=protocol):
        result = checkpoint(flow)
        assert commits(flow.target_servers, group) == []

    assert {row.reason for row in result.standings.rows} == {Reason.ACTIVE}
    assert result.standings.groups == {group: False}
    assert "auto.offset.reset" in result.standings.notes[0]
    assert result.commits == 0
    assert result.records > 0
    assert checkpoint(flow).commits == result.records


def test_every_group_is_listed_with_the_reason(flow: Twins, mark: str, topic: str, group: str) -> None:
    filled(flow, topic, partitions=1)
    empty, other = f"empty-{mark}", f"elsewhere-{mark}x"
    flow.create(empty)
    flow.create(other)
    fill(flow.source_servers, other, range(5))
    flow.mirror()
    fill(flow.source_servers, topic, ["not mirrored yet", "nor this"])
    read(flow.source_servers, f"ahead-{mark}", topic)
    read(flow.source_servers, f"elsewhere-{mark}", other)
    commit(flow.source_servers, f"empty-{mark}", empty, {0: 0})
    share(flow.source_servers, f"share-{mark}", topic)
    with staying(flow.source_servers, f"idle-{mark}", topic):
        result = checkpoint(flow)

    found = {row.group.removesuffix(f"-{mark}"): (row.ready, row.how, row.remark) for row in result.standings.rows}
    assert found == {
        "ahead": (True, "end of copy", Reason.AHEAD),
        "elsewhere": (False, None, Reason.NOT_TAKEN),
        "empty": (True, "empty", None),
        "idle": (False, None, Reason.NO_COMMIT),
        "share": (False, None, Reason.SHARE_GROUP),
    }
    assert {row["group"]: row["reason"] for row in result.standings.left_out} == {
        group: remark
        for group, remark in ((row.group, row.remark) for row in result.standings.rows)
        if remark is not None
    }
    (ahead,) = [row for row in result.standings.rows if row.remark is Reason.AHEAD]
    assert ahead.behind == 2


def test_a_group_that_is_ahead_of_the_mirror_whenever_it_is_looked_at_moves_all_the_same(
    flow: Twins, topic: str, group: str
) -> None:
    """As groups are that keep up with a busy topic: what is not copied yet they have read already."""
    filled(flow, topic, partitions=2)
    twin, stays = flow.twin(topic), f"stays-{group}"
    before = {0: 0, 1: 0}
    for number in range(3):
        flow.mirror()
        for partition in (0, 1):
            fill(flow.source_servers, topic, [f"{number} on {partition}, not copied yet"], partition)
        for name in (group, stays):
            read(flow.source_servers, name, topic)
        result = checkpoint(flow)

        after = committed(flow.target_servers, group, twin)
        assert [(row["reason"], row["ready"]) for row in result.standings.left_out] == [(Reason.AHEAD, True)] * 2
        assert all(after[partition] > before[partition] for partition in after)
        before = after

    assert read(flow.target_servers, group, twin) == Counter()
    flow.mirror()
    checkpoint(flow)
    fill(flow.source_servers, topic, ["later"], 1)
    flow.mirror()
    assert read(flow.target_servers, stays, twin) == Counter([(1, b"later")])


def test_what_a_group_reads_that_came_from_the_target_does_not_keep_it_from_moving(
    flow: Twins, mark: str, topic: str, group: str
) -> None:
    there, back = both_ways(flow)
    theirs = f"theirs-{mark}"
    filled(there, topic, partitions=1)
    back.create(theirs)
    fill(back.source_servers, theirs, range(5))
    for one in (back, there):
        assert one.mirror().failures == []
    commit(there.source_servers, group, topic, {0: 5})
    for name in (group, f"theirs-only-{mark}"):
        commit(there.source_servers, name, back.twin(theirs), {0: 3})

    result = checkpoint(there)

    table = ReadinessTables(there.ledger).last([])
    assert result.standings.groups == {group: True, f"theirs-only-{mark}": False}
    assert [(row["group"], row["reason"], row["ready"]) for row in result.standings.left_out] == [
        (group, Reason.CAME_FROM_TARGET, True),
        (f"theirs-only-{mark}", Reason.CAME_FROM_TARGET, False),
    ]
    assert table is not None
    assert [(one.group, one.ready) for one in table.groups] == sorted(result.standings.groups.items())
    assert committed(there.target_servers, group, there.twin(topic)) == {0: 5}


def test_a_pass_that_died_between_record_and_commit_is_gone_on_with(
    flow: Twins, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(flow, topic, partitions=1)
    read(flow.source_servers, group, topic, 20)
    flow.mirror()
    checkpoint(flow)
    commit(flow.source_servers, group, topic, {0: 7})

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("twinlog.operations.checkpoint_writing.commit_offsets", die)
        with pytest.raises(KeyboardInterrupt):
            checkpoint(flow)
    assert committed(flow.target_servers, group, flow.twin(topic)) == {0: 20}

    result = checkpoint(flow)

    assert committed(flow.target_servers, group, flow.twin(topic)) == {0: 7}
    assert (result.records, result.commits) == (0, 1)


def test_the_words_of_a_commit_travel_and_old_ones_are_renewed(
    flow: Twins, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(flow, topic, partitions=1)
    commit(flow.source_servers, group, topic, {0: 3}, metadata="what Streams keeps there")
    flow.mirror()
    checkpoint(flow)
    assert [one.metadata for one in commits(flow.target_servers, group)] == ["what Streams keeps there"]

    monkeypatch.setattr("twinlog.operations.checkpoint.MOST_AGE_S", 0.0)
    renewed = checkpoint(flow)

    assert (renewed.records, renewed.commits) == (1, 1)


def test_a_strange_record_among_the_checkpoints_is_told_and_passed_over(flow: Twins, topic: str, group: str) -> None:
    filled(flow, topic, partitions=1)
    commit(flow.source_servers, group, topic, {0: 3})
    flow.mirror()
    checkpoint(flow)
    writer = producer(flow.target_servers)
    writer.produce(checkpoints_topic(flow.flow), b"what is this", b"somebody's")
    assert writer.flush(30) == 0
    commit(flow.source_servers, group, topic, {0: 5})

    result = checkpoint(flow)
    planned = planning(flow).plan(group)

    assert result.commits == 1
    for notes in (result.standings.notes, planned.notes):
        (note,) = [note for note in notes if checkpoints_topic(flow.flow) in note]
        assert note.endswith("it is passed over")
    assert [(row["partition"], row["offset"]) for row in planned.plan] == [(0, 5)]


def test_a_dry_run_and_a_flow_that_only_emits_commit_nothing(flow: Twins, topic: str, group: str) -> None:
    filled(flow, topic, partitions=1)
    read(flow.source_servers, group, topic, 20)
    flow.mirror()

    shown = checkpoint(flow, dry_run=True)
    emitted = checkpoint(flow, sync_group_offsets_enabled=False, emit_checkpoints_enabled=True)

    assert (shown.records, shown.commits) == (1, 1)
    assert (emitted.records, emitted.commits) == (1, 0)
    assert commits(flow.target_servers, group) == []


def test_brokers_that_answer_for_one_group_a_request_are_read_all_the_same(
    flow: Twins, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those before Kafka 3.0 do."""
    filled(flow, topic, partitions=2)
    for name in (group, f"other-{group}"):
        commit(flow.source_servers, name, topic, {0: 3, 1: 5})
    flow.mirror()
    newest = RawClient.api_version
    asked: list[int] = []

    def older(client: RawClient, request_type: type) -> int:
        version = newest(client, request_type)
        if request_type is not OffsetFetchRequest:
            return version
        asked.append(MANY_GROUPS_VERSION - 1)
        return asked[-1]

    monkeypatch.setattr(RawClient, "api_version", older)
    result = checkpoint(flow)

    assert asked
    assert result.standings.groups == {group: True, f"other-{group}": True}
    assert result.commits == 4
    assert committed(flow.target_servers, group, flow.twin(topic))[0] == 3


def test_two_thousand_groups_at_once(flow: Twins, mark: str, topic: str) -> None:
    filled(flow, topic, partitions=2)
    everything = all_of(flow.source_servers, topic)
    flow.mirror()
    names = [f"group-{number}-{mark}" for number in range(2_000)]
    positions = {name: {0: number % 40, 1: number % 30} for number, name in enumerate(names)}
    commit_all(flow.source_servers, topic, positions)

    result = checkpoint(flow)

    assert result.standings.groups == dict.fromkeys(names, True)
    assert result.commits == 2 * len(names)
    for number in (0, 17, 1999):
        read_before = Counter((0, f"0: {value}".encode()) for value in range(number % 40))
        read_before += Counter((1, f"1: {value}".encode()) for value in range(number % 30))
        assert read_before + read(flow.target_servers, names[number], flow.twin(topic)) == everything


def test_a_pass_of_more_checkpoints_than_a_transaction_takes_writes_them_all(
    flow: Twins, mark: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow.create(topic, 5)
    for partition in range(5):
        fill(flow.source_servers, topic, range(3), partition)
    names = [f"one-{mark}", f"two-{mark}"]
    for name in names:
        commit(flow.source_servers, name, topic, dict.fromkeys(range(5), 2))
    flow.mirror()
    monkeypatch.setattr("twinlog.cluster.checkpoint_store.RECORDS_A_TRANSACTION", 3)

    assert checkpoint(flow).records == 10
    assert checkpoint(flow).records == 0, "all of them are found again"
    for name in names:
        assert committed(flow.target_servers, name, flow.twin(topic)) == dict.fromkeys(range(5), 2)
