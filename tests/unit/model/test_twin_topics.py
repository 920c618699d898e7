from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlog.model.made import MadeTopic
from twinlog.model.twin_topics import (
    Deletion,
    DeletionRules,
    Growth,
    ReportKind,
    TopicFacts,
    plan_deletions,
    plan_topics,
    replication_factor,
)

HERE, THERE, OTHER = UUID(int=1), UUID(int=2), UUID(int=3)
RULES = DeletionRules("nyc-cluster", now_ms=1_000_000, grace_ms=5_000)


def source(partitions: int = 1, topic_id: UUID = HERE, replicas: int = 1) -> TopicFacts:
    return TopicFacts("orders", topic_id, partitions, replicas)


def twin(partitions: int = 1, topic_id: UUID = THERE) -> TopicFacts:
    return TopicFacts("nyc.orders", topic_id, partitions, 1)


def made(**changed: object) -> dict[str, MadeTopic]:
    said: dict[str, object] = {
        "target_id": THERE,
        "source": "orders",
        "source_id": HERE,
        "source_cluster": "nyc-cluster",
        **changed,
    }
    return {"nyc.orders": MadeTopic(**said)}  # type: ignore[arg-type]


def test_a_twin_that_is_missing_and_one_that_is_too_small() -> None:
    assert plan_topics({"nyc.orders": source()}, {}, {}).missing == ("nyc.orders",)
    assert plan_topics({"nyc.orders": source(4)}, {"nyc.orders": twin(1)}, {}).grow == (Growth("nyc.orders", 1, 4),)


def test_a_topic_that_came_from_the_target_and_is_gone_there_stays_deleted() -> None:
    planned = plan_topics({"orders": source()}, {}, {}, came_back={"orders"})

    assert (planned.missing, planned.gone_at_home) == ((), ("orders",))
    # Grown at the other side it grows all the same, and one that is there is nothing to tell.
    there = plan_topics({"orders": source(2)}, {"orders": twin(1)}, {}, came_back={"orders"})
    assert (there.grow, there.gone_at_home) == ((Growth("orders", 1, 2),), ())


def test_a_source_that_shrank_and_one_that_was_created_again() -> None:
    shrunk = plan_topics({"nyc.orders": source(1)}, {"nyc.orders": twin(2)}, {})
    again = plan_topics({"nyc.orders": source(topic_id=OTHER)}, {"nyc.orders": twin()}, {"nyc.orders": HERE})

    assert [report.kind for report in shrunk.reports] == [ReportKind.SHRUNK]
    assert [report.kind for report in again.reports] == [ReportKind.RECREATED]


def test_a_twin_waits_for_its_grace_period_from_when_its_source_was_first_found_gone() -> None:
    targets = {"nyc.orders": twin()}

    new = plan_deletions(["orders"], targets, made(), RULES)
    known = plan_deletions(["orders"], targets, made(gone_since_ms=400_000), RULES)

    assert new.deletions == (Deletion("nyc.orders", THERE, "orders", 1_005_000),)
    assert known.deletions == (Deletion("nyc.orders", THERE, "orders", 405_000),)


@pytest.mark.parametrize(
    ("gone", "targets", "remembered"),
    [
        ([], {"nyc.orders": twin()}, made()),
        (["orders"], {}, made()),
        (["orders"], {"nyc.orders": twin(topic_id=OTHER)}, made()),
        (["orders"], {"nyc.orders": twin()}, {}),
    ],
    ids=["the source is there", "the twin is gone", "the twin is another one", "somebody else made it"],
)
def test_what_is_never_deleted(
    gone: list[str], targets: dict[str, TopicFacts], remembered: dict[str, MadeTopic]
) -> None:
    assert plan_deletions(gone, targets, remembered, RULES).deletions == ()


def test_a_source_that_is_another_cluster_now_deletes_nothing_and_is_reported() -> None:
    found = plan_deletions(["orders"], {"nyc.orders": twin()}, made(source_cluster="the old one"), RULES)

    assert found.deletions == ()
    assert [report.kind for report in found.reports] == [ReportKind.SOURCE_REPLACED]


@pytest.mark.parametrize(
    ("said", "brokers", "default", "factor"),
    [
        (2, 3, None, 2),
        (3, 1, None, 1),
        ("source", 5, None, 3),
        ("target", 3, None, -1),
        ("target", 3, 2, 2),
        (-1, 3, 2, 2),
    ],
)
def test_replication_factor(said: int | str, brokers: int, default: int | None, factor: int) -> None:
    assert replication_factor(said, source(replicas=3), brokers, default) == factor


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 5)),
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 5)),
)
def test_after_creating_and_growing_nothing_is_left_to_do(here: dict[str, int], there: dict[str, int]) -> None:
    sources = {name: TopicFacts(name, HERE, count, 1) for name, count in here.items()}
    targets = {name: TopicFacts(name, THERE, count, 1) for name, count in there.items()}

    planned = plan_topics(sources, targets, {})
    targets |= {name: sources[name] for name in planned.missing}
    targets |= {growth.name: TopicFacts(growth.name, THERE, growth.after, 1) for growth in planned.grow}
    after = plan_topics(sources, targets, {})

    assert (after.missing, after.grow) == ((), ())
    assert all(growth.after > growth.before for growth in planned.grow)
    assert all(targets[name].partitions >= sources[name].partitions for name in sources)
