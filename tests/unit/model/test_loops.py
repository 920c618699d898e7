"""Circles and shared names among flows."""

from __future__ import annotations

from twinlog.model.flow import Flow
from twinlog.model.loops import conflicts


def identity(source: str, target: str, *topics: str, enabled: bool = True) -> Flow:
    return Flow(source, target, naming="identity", topics=topics or (".*",), enabled=enabled)


def found(*flows: Flow) -> list[str]:
    return [conflict.flow for conflict in conflicts(flows)]


def test_prefixed_flows_may_form_any_circle() -> None:
    assert found(Flow("a", "b"), Flow("b", "c"), Flow("c", "a")) == []


def test_two_identity_flows_may_face_each_other() -> None:
    assert found(identity("a", "b"), identity("b", "a")) == []


def test_three_in_a_circle_are_reported_once() -> None:
    assert found(identity("a", "b"), identity("b", "c"), identity("c", "a")) == ["a->b"]


def test_a_circle_of_four_is_found() -> None:
    assert found(identity("a", "b"), Flow("b", "c"), Flow("c", "d"), Flow("d", "a")) == ["a->b"]


def test_a_naming_policy_in_python_hides_the_origin_too() -> None:
    own = Flow("a", "b", naming="custom", naming_policy="mine:Naming")
    assert found(own, Flow("b", "c"), Flow("c", "a")) == ["a->b"]


def test_a_disabled_flow_closes_no_circle() -> None:
    assert found(identity("a", "b"), identity("b", "c"), identity("c", "a", enabled=False)) == []


def test_flows_that_name_different_topics_close_no_circle() -> None:
    ring = identity("a", "b", "orders"), identity("b", "c", "stock"), identity("c", "a", "orders", r"pay\.in")
    assert found(*ring) == []
    assert found(*ring[:1], identity("b", "c", "orders"), ring[2]) == ["a->b"]


def custom(source: str, target: str, text: str, *topics: str) -> Flow:
    return Flow(source, target, naming="custom", naming_format=text, topics=topics or (".*",))


def test_custom_names_collide_only_where_they_can_be_equal() -> None:
    assert found(custom("a", "c", "all.${topic}"), custom("b", "c", "all.${topic}")) == ["b->c"]
    assert found(custom("a", "c", "${source}.${topic}"), custom("b", "c", "${source}.${topic}")) == []
    assert found(custom("a", "c", "all.${topic}"), custom("b", "d", "all.${topic}")) == []
    assert found(custom("a", "c", "all.${topic}", "x"), custom("b", "c", "all.${topic}", "y")) == []
