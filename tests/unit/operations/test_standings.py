"""What becomes of groups' positions when they are held against the source, the ledger and the target."""

from __future__ import annotations

from uuid import UUID

from twinlog.cluster.checkpoint_store import GroupPartition
from twinlog.cluster.group_offsets import Offsets
from twinlog.intake.extensions import topics_of
from twinlog.ledger.answers import Twin
from twinlog.ledger.schema import IN_MEMORY
from twinlog.ledger.translate import Translator
from twinlog.model.checkpoints import Checkpoint, Commit, Reason, Written
from twinlog.model.offsets import PartitionPair, TopicPartition
from twinlog.model.selection import TopicSelection
from twinlog.model.topology import Cluster, Flow, Topology
from twinlog.operations.group_translation import GroupTranslation
from twinlog.operations.source_groups import SourceGroups
from twinlog.operations.standings import Standings, TargetGroups, standings

MIRRORED, ANEW, THERE = UUID(int=1), UUID(int=2), UUID(int=3)
SOURCE, TARGET = TopicPartition("orders", 0), TopicPartition("nyc.orders", 0)


def found(
    commit: Commit, target: TargetGroups | None = None, topic_id: UUID | None = MIRRORED, *, sync: bool = True
) -> Standings:
    """The standings of one group on one empty partition that is mirrored."""
    flow = Flow("nyc", "lon", topics=(".*",))
    clusters = {alias: Cluster(alias, bootstrap_servers="unused:1") for alias in ("nyc", "lon")}
    selection = TopicSelection(Topology(clusters, {flow.name: flow}), flow, {}, topics_of(flow))
    twin = Twin(PartitionPair("orders", MIRRORED, "nyc.orders", THERE, 0), 0, 0, 0)
    translation = GroupTranslation(Translator(IN_MEMORY.empty_table(), [twin]))
    ids = {} if topic_id is None else {"orders": topic_id}
    groups = SourceGroups({"billing": {SOURCE: commit}}, topic_ids=ids)
    return standings(selection, groups, translation, target or TargetGroups({}), sync=sync)


def test_a_mirrored_position_is_due() -> None:
    (row,) = found(Commit(0)).rows
    assert (row.ready, row.commit_due, row.offset, row.target) == (True, True, 0, TARGET)


def test_a_topic_that_was_made_anew_on_the_source_has_another_position() -> None:
    (row,) = found(Commit(0), topic_id=ANEW).rows
    assert (row.ready, row.commit_due, row.record_due, row.reason) == (False, False, False, Reason.RECREATED)


def test_without_the_source_the_ids_of_the_positions_stand() -> None:
    (row,) = found(Commit(0), topic_id=None).rows
    assert row.ready


def test_what_does_not_fit_a_checkpoint_is_a_reason() -> None:
    (row,) = found(Commit(0, metadata="ü" * 20_000)).rows
    assert (row.ready, row.record_due, row.reason) == (False, False, Reason.LONG_METADATA)


def test_a_group_that_is_active_and_has_committed_nothing_is_not_ready() -> None:
    seen = found(Commit(0), TargetGroups({}, frozenset({"billing"})))

    assert [(row.ready, row.reason, row.commit_due) for row in seen.rows] == [(False, Reason.ACTIVE, False)]
    assert "billing" in seen.notes[0]
    assert "auto.offset.reset" in seen.notes[0]


def test_an_active_group_that_has_committed_goes_on_there() -> None:
    seen = found(Commit(0), TargetGroups({}, frozenset({"billing"}), Offsets({"billing": {TARGET: Commit(7)}})))

    assert [(row.ready, row.offset) for row in seen.rows] == [(True, 7)]
    assert seen.notes == ()


def test_a_flow_that_only_emits_names_nothing_as_ours() -> None:
    written = {GroupPartition("billing", TARGET): Written(Checkpoint(5, 5), 1, frozenset())}
    (row,) = found(Commit(0), TargetGroups(written), sync=False).rows
    assert (row.record_due, row.decision.ours) == (True, frozenset())
