"""Filters and naming from Python entry points."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from twinlog.errors import ConfigurationError
from twinlog.intake.extensions import configs_of, groups_of, naming_of, topics_of
from twinlog.model.flow import Flow

MODULE = """
class Short:
    def __init__(self, flow):
        self.flow = flow
    def accepts(self, name):
        return len(name) < 4

class Upper:
    def __init__(self, flow):
        self.prefix = flow.source.upper() + "-"
    def target_name(self, topic):
        return self.prefix + topic
    def source_name(self, remote_topic):
        return remote_topic.removeprefix(self.prefix) if remote_topic.startswith(self.prefix) else None

class Nothing:
    def __init__(self, flow): pass

class NoFlow:
    pass

value = 3
"""


@pytest.fixture(autouse=True)
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "twinlog_extension_of_a_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "twinlog_extension_of_a_test", raising=False)


def named(name: str) -> str:
    return f"twinlog_extension_of_a_test:{name}"


def test_filters() -> None:
    flow = Flow("a", "b", topic_filter=named("Short"), group_filter=named("Short"), config_filter=named("Short"))
    for chosen in (topics_of(flow), groups_of(flow), configs_of(flow)):
        assert chosen.accepts("abc")
        assert not chosen.accepts("abcd")


def test_naming() -> None:
    policy = naming_of(Flow("a", "b", naming="custom", naming_policy=named("Upper")))
    assert policy.target_name("orders") == "A-orders"
    assert policy.source_name("A-orders") == "orders"


def test_without_entry_points_the_patterns_hold() -> None:
    flow = Flow("a", "b", topics=("orders",))
    assert topics_of(flow).accepts("orders")
    assert groups_of(flow).accepts("any")
    assert configs_of(flow).accepts("retention.ms")
    assert naming_of(flow).target_name("orders") == "a.orders"


@pytest.mark.parametrize(
    ("entry_point", "message"),
    [
        (
            "twinlog_is_not_here:X",
            "cannot be imported: No module named 'twinlog_is_not_here'; is it on the Python path?",
        ),
        (named("Gone"), "twinlog_extension_of_a_test has no class or function Gone"),
        (named("value"), "twinlog_extension_of_a_test has no class or function value"),
        (named("Nothing"), "has no accepts"),
        (named("NoFlow"), "must take the flow as its one argument: NoFlow() takes no arguments"),
    ],
)
def test_what_is_wrong_is_named(entry_point: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        topics_of(Flow("a", "b", topic_filter=entry_point))
    assert f'flow a->b: topic.filter "{entry_point}"' in str(raised.value)
    assert message in str(raised.value)
