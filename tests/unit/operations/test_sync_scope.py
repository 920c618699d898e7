from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from twinlog.model.made import Made, MadeTopic
from twinlog.operations.sync_scope import Memory

HERE, THERE = UUID(int=1), UUID(int=2)
BROUGHT = Made({"orders": MadeTopic(HERE, "orders", THERE, "lon-cluster")})
MEMORY = Memory(Made(), BROUGHT, lambda topic: topic != "elsewhere")


def test_what_the_opposite_flow_made_is_known_by_its_id() -> None:
    assert MEMORY.came_back("orders", HERE)
    assert not MEMORY.came_back("orders", THERE)
    assert not MEMORY.came_back("payments", HERE)
    assert MEMORY.lost == []


def test_where_its_memory_is_lost_everything_counts_that_it_can_have_made() -> None:
    lost = replace(MEMORY, opposite=Made(), lost_opposite="it can't be read")

    assert lost.came_back("payments", HERE)
    assert not lost.came_back("elsewhere", HERE)
    assert lost.lost == ["it can't be read"]
