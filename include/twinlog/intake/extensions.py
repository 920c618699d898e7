"""Filters and naming that people write in Python, named in a topology as `package.module:Name`.

The object named is called with the flow and must return what `NameFilter` or `NamingPolicy` describes; it is
imported when a flow is about to use it, so that a topology can be read and checked where the code is not.
"""

from __future__ import annotations

import importlib
from typing import Any

from twinlog.errors import ConfigurationError
from twinlog.model.filters import NameFilter, config_filter, group_filter, topic_filter
from twinlog.model.flow import Flow
from twinlog.model.naming import NamingPolicy, but_for_schemas, policy_of
from twinlog.model.way_home import GoesHome, Homeward, WayHome


def topics_of(flow: Flow) -> NameFilter:
    """The flow's choice of topics: its `topic.filter`, or its patterns."""
    if isinstance(flow, WayHome):
        return GoesHome(flow, naming_of(flow.onward), topics_of(flow.onward))
    return _filter(flow, "topic.filter", flow.topic_filter) if flow.topic_filter else topic_filter(flow)


def groups_of(flow: Flow) -> NameFilter:
    """The flow's choice of consumer groups: its `group.filter`, or its patterns."""
    return _filter(flow, "group.filter", flow.group_filter) if flow.group_filter else group_filter(flow)


def configs_of(flow: Flow) -> NameFilter:
    """The flow's choice of topic settings: its `config.filter`, or its patterns."""
    return _filter(flow, "config.filter", flow.config_filter) if flow.config_filter else config_filter(flow)


def naming_of(flow: Flow) -> NamingPolicy:
    """The flow's naming: its `naming.policy`, or what `naming` says."""
    if isinstance(flow, WayHome):
        return Homeward(naming_of(flow.onward))
    if flow.naming_policy is None:
        return policy_of(flow)
    policy: NamingPolicy = _made(flow, "naming.policy", flow.naming_policy, ("target_name", "source_name"))
    return but_for_schemas(flow, policy)


def _filter(flow: Flow, setting: str, entry_point: str) -> NameFilter:
    made: NameFilter = _made(flow, setting, entry_point, ("accepts",))
    return made


def _made(flow: Flow, setting: str, entry_point: str, methods: tuple[str, ...]) -> Any:
    module_name, _, name = entry_point.partition(":")
    where = f'flow {flow.name}: {setting} "{entry_point}"'
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigurationError(f"{where} cannot be imported: {error}; is it on the Python path?") from error
    factory = getattr(module, name, None)
    if not callable(factory):
        raise ConfigurationError(f"{where}: {module_name} has no class or function {name}")
    try:
        made = factory(flow)
    except TypeError as error:
        raise ConfigurationError(f"{where} must take the flow as its one argument: {error}") from error
    missing = [method for method in methods if not callable(getattr(made, method, None))]
    if missing:
        raise ConfigurationError(f"{where} has no {' and no '.join(missing)}")
    return made
