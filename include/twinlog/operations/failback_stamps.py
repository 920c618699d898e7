"""What goes home keeps its stamps: topics of the source that are stamped on arrival take them as they are meanwhile.

The plan remembers what each of them had, and it is put back before the flow is active again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from twinlog.cluster.made_store import MadeStore
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import demand
from twinlog.cluster.topic_settings import change_settings, read_settings
from twinlog.model.made import made_topic
from twinlog.model.topology import Flow
from twinlog.model.twin_settings import SettingChange

STAMPS = "message.timestamp.type"
AS_THEY_ARE = "CreateTime"
_ON_ARRIVAL = "LogAppendTime"


def stamped_on_arrival(
    source: RawClient, held: Mapping[str, Mapping[str, str]], topics: Mapping[str, str], anew: Collection[str]
) -> dict[str, str | None]:
    """The source's topics whose stamps are to be held back, each with what it overrides of that now, or had overridden
    before it was lost; `topics` are the twins with their names there."""
    there = source.run(source.metadata(list(topics.values()))).topics if topics else {}
    names = [name for name in topics.values() if there[name].error is None]
    read = source.run(read_settings(source, names, [STAMPS])).topics
    found: dict[str, str | None] = {}
    for twin, name in topics.items():
        now = read.get(name)
        if now is not None and now.effective.get(STAMPS) == _ON_ARRIVAL:
            found[name] = now.overrides.get(STAMPS)
        elif twin in anew:
            found[name] = held.get(twin, {}).get(STAMPS) if now is None else now.overrides.get(STAMPS)
    return found


async def held_back(target: RawClient, flow: Flow) -> Mapping[str, Mapping[str, str]]:
    """By the twin, what the source's topics had of the settings that copying sets on twins, as every sync notes it."""
    topic = made_topic(flow.source, flow.target)
    if (await target.metadata([topic])).topics[topic].is_missing:
        return {}
    return (await MadeStore(target, flow.source, flow.target).read()).held


def hold_stamps(source: RawClient, stamps: Mapping[str, str | None]) -> None:
    """Until `put_back`."""
    _change(source, (SettingChange(name, STAMPS, before, AS_THEY_ARE) for name, before in stamps.items()))


def put_back(source: RawClient, stamps: Mapping[str, str | None]) -> None:
    """As the topics had it."""
    _change(source, (SettingChange(name, STAMPS, AS_THEY_ARE, before) for name, before in stamps.items()))


def _change(source: RawClient, changes: Iterator[SettingChange]) -> None:
    refused = source.run(change_settings(source, changes))
    by_topic = {f"topic {name}": why for name, why in refused.items()}
    demand(source.alias, source.principal, "ALTER_CONFIGS", by_topic, f"{STAMPS} stays as it is")
