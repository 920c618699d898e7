"""Consumer groups that have positions on a twin which is made anew: a broker forgets what was committed on a topic that
is deleted, and the same offset means another record on the new one.

So each position is translated back to the source before, and onward again afterwards. Positions that the flow itself
has committed for a group are left to its checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # noqa: TID253 - no DAG imports an operation at its top

from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.checkpoint_store import GroupPartition
from twinlog.cluster.group_offsets import commit_offsets, fetch_offsets
from twinlog.cluster.group_reading import read_groups
from twinlog.cluster.raw import RawClient
from twinlog.ledger.store import Ledger
from twinlog.model.checkpoints import Commit, is_ours, is_own_group
from twinlog.model.offsets import TopicPartition
from twinlog.model.repair import Moved, source_of
from twinlog.model.topology import Flow
from twinlog.operations.checkpoint import checkpoint_store
from twinlog.operations.translate import translator


@dataclass(frozen=True, slots=True)
class OnTwin:
    """One group's position on a partition of a twin."""

    group: str
    partition: TopicPartition
    commit: Commit
    active: bool
    ours: bool
    """The flow has committed it, as a checkpoint."""


def groups_on(flow: Flow, target: RawClient, twins: frozenset[str]) -> list[OnTwin]:
    """Every position on these topics; those of Twinlog itself aside."""
    listing, offsets = target.run(read_groups(target, lambda group: not is_own_group(group.name)))
    written = target.run(checkpoint_store(flow, target).read())
    return [
        OnTwin(
            name,
            partition,
            commit,
            name in listing.groups and listing.groups[name].active,
            is_ours(commit, written.get(GroupPartition(name, partition))),
        )
        for name, commits in sorted(offsets.groups.items())
        for partition, commit in sorted(commits.items())
        if partition.topic in twins
    ]


def noted(
    flow: Flow, access: ClusterAccess, ledger: Ledger, found: Sequence[OnTwin], moved: Mapping[str, Sequence[Moved]]
) -> list[dict[str, Any]]:
    """A row a position, with the source's offset that means the same; `moved` are, by twin, the records of which the
    ledger does not know where they are."""
    rows = [one for one in found if not one.ours]
    if not rows:
        return []
    translate = translator(flow, access, ledger)
    answers = translate.table(_asked([(one.partition, one.commit.offset) for one in rows]), reverse=True)
    offsets, topics = answers.column("to_offset").to_pylist(), answers.column("to_topic").to_pylist()
    return [
        {
            "group": one.group,
            "twin": one.partition.topic,
            "partition": one.partition.partition,
            "offset": one.commit.offset,
            "metadata": one.commit.metadata,
            "topic": topic,
            "source_offset": _source_offset(one, moved.get(one.partition.topic, ()), offset),
        }
        for one, topic, offset in zip(rows, topics, offsets, strict=True)
    ]


def put_back(
    flow: Flow, access: ClusterAccess, ledger: Ledger, target: RawClient, rows: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Commit where each group goes on, on the twin as it is now, where it has committed nothing there since; answers,
    in sentences, whatever could not be put back."""
    known = [row for row in rows if row["source_offset"] is not None]
    for row in rows:
        if row["source_offset"] is None:
            yield f"{_words(row)}: the ledger can't say what it means; it was at target offset {row['offset']}"
    if not known:
        return
    translate = translator(flow, access, ledger)
    places = [TopicPartition(row["topic"], row["partition"]) for row in known]
    asked = _asked([(place, row["source_offset"]) for place, row in zip(places, known, strict=True)])
    answers = translate.table(asked).column("to_offset").to_pylist()
    there = target.run(fetch_offsets(target, sorted({row["group"] for row in known}))).groups
    commits: dict[str, dict[TopicPartition, Commit]] = {}
    for row, offset in zip(known, answers, strict=True):
        place = TopicPartition(row["twin"], row["partition"])
        if offset is None:
            yield f"{_words(row)}: source offset {row['source_offset']} is not on the twin yet"
        elif place not in there.get(row["group"], {}):
            commits.setdefault(row["group"], {})[place] = Commit(offset, metadata=row["metadata"])
    outcomes = target.run(commit_offsets([target], commits)) if commits else {}
    back = target.run(fetch_offsets(target, sorted(commits))).groups if commits else {}
    for name, wanted in commits.items():
        for place, commit in wanted.items():
            found = back.get(name, {}).get(place)
            if found is None or found.offset != commit.offset:
                why = "it has members by now" if outcomes[name].active else "its coordinator refused it"
                yield f"group {name} on {place}: it should go on at {commit.offset}, and could not be put there: {why}"


def _source_offset(one: OnTwin, moves: Sequence[Moved], translated: int | None) -> int | None:
    found = source_of(one.commit.offset, one.partition.partition, moves)
    return translated if found is None else found


def _words(row: Mapping[str, Any]) -> str:
    return f"group {row['group']} on {row['twin']}-{row['partition']}"


def _asked(rows: Sequence[tuple[TopicPartition, int]]) -> pa.Table:
    return pa.table(
        {
            "topic": pa.array([one.topic for one, _ in rows], pa.string()),
            "partition": pa.array([one.partition for one, _ in rows], pa.int32()),
            "offset": pa.array([offset for _, offset in rows], pa.int64()),
        }
    )
