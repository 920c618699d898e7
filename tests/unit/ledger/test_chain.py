from __future__ import annotations

import itertools
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinlog.errors import LedgerError
from twinlog.ledger.chain import START, Link, Mark, Node, live


def mark(total: int) -> Mark:
    return Mark("journal", {0: total - total // 3, 1: total // 3})


def link(before: int, after: int) -> Link:
    return Link((mark(before) if before else Mark()).node, mark(after).node)


def test_a_mark_survives_json_and_a_link_its_name() -> None:
    assert Mark.from_json(mark(9).to_json()) == mark(9)
    assert Link.parse(link(0, 9).name) == link(0, 9)
    assert [Link.parse(name) for name in ("_mark-00.json", "part-0.parquet", f"_{link(0, 9).name}")] == [None] * 3


def test_marks_of_the_same_total_are_told_apart() -> None:
    one, other = Mark("journal", {0: 5, 1: 4}), Mark("journal", {0: 4, 1: 5})
    assert one.node != other.node
    assert live([Link(START, one.node), Link(other.node, mark(12).node)]) == [Link(START, one.node)]


def test_the_way_that_leads_furthest_with_fewest_files_is_the_ledger() -> None:
    a, b, c = link(0, 10), link(10, 20), link(20, 30)
    assert live([]) == []
    assert live([b, c]) == []
    assert live([c, a, b]) == [a, b, c]
    assert live([a, b, c, link(0, 20)]) == [link(0, 20), c]
    assert live([a, b, c, link(10, 30)]) == [a, link(10, 30)]


def test_a_recorder_that_comes_late_changes_nothing() -> None:
    a, b, c = link(0, 10), link(10, 20), link(20, 30)
    assert live([a, b, c, link(10, 17)]) == [a, b, c]
    assert live([a, b, c, link(10, 17), link(17, 25)]) == [a, b, c]


def test_a_file_cannot_go_backwards() -> None:
    with pytest.raises(LedgerError, match="ledger rebuild"):
        Link(Node(5, "a"), Node(5, "b"))


@settings(deadline=None)
@given(st.integers(0, 2**32))
def test_whatever_files_there_are_the_rows_up_to_the_furthest_mark_are_there_once(seed: int) -> None:
    random = Random(seed)
    totals = sorted(random.sample(range(1, 40), 10))
    way = [link(before, after) for before, after in itertools.pairwise([0, *totals])]
    others = [link(*sorted(random.sample([0, *totals], 2))) for _ in range(random.randrange(8))]
    others += [link(before, before + 1) for before in random.sample(totals[:-1], 3)]
    files = [*way, *others]
    random.shuffle(files)
    chosen = live(files)
    covered = [offset for step in chosen for offset in range(step.before.total, step.after.total)]
    assert covered == list(range(totals[-1]))
