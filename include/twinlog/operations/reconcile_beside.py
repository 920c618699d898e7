"""What is compared beside the records: settings, partitions and permissions by the sync's own plan, and the groups'
checkpoints by the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa  # noqa: TID253 - no DAG imports an operation at its top

from twinlog.cluster.checkpoint_store import GroupPartition
from twinlog.errors import TwinlogError
from twinlog.intake.extensions import naming_of
from twinlog.ledger.answers import How
from twinlog.ledger.store import Ledger
from twinlog.model.checkpoints import Written
from twinlog.model.offsets import TopicPartition
from twinlog.model.reconciliation import Difference, Kind
from twinlog.model.sync_plan import Change, ChangeKind
from twinlog.model.topology import Flow, Topology
from twinlog.operations.checkpoint import checkpoint_store
from twinlog.operations.directions import comes_back
from twinlog.operations.run_scope import Ends
from twinlog.operations.sync import Sync
from twinlog.operations.translate import translator

_KINDS = {
    ChangeKind.ADD_PARTITIONS: Kind.PARTITIONS,
    ChangeKind.SET_SETTING: Kind.SETTING,
    ChangeKind.RESET_SETTING: Kind.SETTING,
    ChangeKind.SET_QUOTA: Kind.SETTING,
    ChangeKind.REMOVE_QUOTA: Kind.SETTING,
    ChangeKind.ADD_ACL: Kind.PERMISSION,
    ChangeKind.REMOVE_ACL: Kind.PERMISSION,
}


@dataclass(frozen=True)
class Beside:
    """Differences, and what there is to say that is none."""

    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()


def compare_beside(topology: Topology, flow: Flow, ends: Ends, ledger: Ledger, wanted: Callable[[str], bool]) -> Beside:
    """All of it; what can't be compared is said, and hides nothing of the rest."""
    differences: list[Difference] = []
    notes: list[str] = []
    comparisons: dict[str, Callable[[], Beside]] = {
        "settings and permissions": lambda: compare_settings(topology, flow, ends, wanted),
        "groups": lambda: compare_groups(topology, flow, ends, ledger, wanted),
    }
    for what, compare in comparisons.items():
        try:
            found = compare()
        # Storage fails with errors of the operating system's kind, S3 too.
        except (TwinlogError, OSError) as failed:
            notes.append(f"{what} were not compared: {failed}")
        else:
            differences += found.differences
            notes += found.notes
    return Beside(tuple(differences), tuple(notes))


def compare_settings(topology: Topology, flow: Flow, ends: Ends, wanted: Callable[[str], bool]) -> Beside:
    """What a sync would put right; a topic that is still to be made is no difference but news."""
    result = Sync(topology, flow, ends.source, ends.target).run(dry_run=True)
    if result.skipped is not None:
        return Beside(notes=(f"settings were not compared: {result.skipped}",))
    policy = naming_of(flow)
    new = {change.resource for change in result.changes if change.kind is ChangeKind.CREATE_TOPIC}
    gone = {change.resource for change in result.changes if change.kind is ChangeKind.DELETE_TOPIC}
    differences = [
        _changed(change, policy.source_name(change.resource))
        for change in result.changes
        if change.kind in _KINDS and change.resource not in new and wanted(policy.source_name(change.resource) or "")
    ]
    notes = [f"{name} is on {flow.source} and has no twin yet: the next run makes it" for name in sorted(new)]
    notes += [f"{name} is gone from {flow.source}, and its twin will be deleted" for name in sorted(gone)]
    return Beside(tuple(differences), (*notes, *result.failed, *result.notes))


def _changed(change: Change, source: str | None) -> Difference:
    before, after = (value if value is not None else "none" for value in (change.before, change.after))
    detail = f"{change.resource}: {change.name} is {before} on the target and should be {after}"
    return Difference(_KINDS[change.kind], source, detail=detail)


def compare_groups(topology: Topology, flow: Flow, ends: Ends, ledger: Ledger, wanted: Callable[[str], bool]) -> Beside:
    """Each checkpoint that was written, translated anew: as many copied records must be left to read from either."""
    with ends.target.raw() as target:
        written = target.run(checkpoint_store(flow, target).read())
    both_ways, policy = comes_back(topology, flow), naming_of(flow)
    rows = [
        (place, one, source)
        for place, one in written.items()
        if (source := policy.source_name(place.partition.topic)) is not None
        and wanted(source)
        # What both directions feed is translated by both, and moves with either.
        and not both_ways(source)
    ]
    if not rows:
        return Beside()
    translate = translator(flow, ends.target, ledger)
    answers = translate.table(_asked([(TopicPartition(s, p.partition.partition), o.last.upstream) for p, o, s in rows]))
    offsets, hows = answers.column("to_offset").to_pylist(), answers.column("how").to_pylist()
    told = translate.unread(_asked([(place.partition, one.last.downstream) for place, one, _ in rows]))
    meant = translate.unread(_asked([(row[0].partition, to or 0) for row, to in zip(rows, offsets, strict=True)]))
    return Beside(
        tuple(
            difference
            for (place, one, source), to, how, says, means in zip(rows, offsets, hows, told, meant, strict=True)
            for difference in _group_difference(place, one, source, to, how, int(says) - int(means))
        )
    )


def _group_difference(  # noqa: PLR0917 - a checkpoint, and what the ledger says
    place: GroupPartition, one: Written, source: str, offset: int | None, how: str | None, records: int
) -> Iterator[Difference]:
    # Without an answer (the source's group is ahead, or a topic was made anew) or below the log's start there is
    # nothing to hold it against.
    if offset is None or how in (How.EXPIRED, How.EMPTY) or not records:
        return
    what = f"would skip {-records:,} records" if records < 0 else f"would read {records:,} records again"
    yield Difference(
        Kind.GROUP,
        source,
        place.partition.partition,
        one.last.upstream,
        one.last.downstream,
        f"the checkpoint of group {place.group} {what}: the ledger says target offset {offset}",
        abs(records),
    )


def _asked(rows: list[tuple[TopicPartition, int]]) -> pa.Table:
    return pa.table(
        {
            "topic": pa.array([one.topic for one, _ in rows], pa.string()),
            "partition": pa.array([one.partition for one, _ in rows], pa.int32()),
            "offset": pa.array([offset for _, offset in rows], pa.int64()),
        }
    )
