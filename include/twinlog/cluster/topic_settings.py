"""Reading and changing the settings of many topics at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka.protocol.admin import DescribeConfigsRequest, IncrementalAlterConfigsRequest

from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import Refusal, portions, refusal
from twinlog.model.twin_settings import SettingChange, TopicSettings

TOPICS_A_REQUEST = 500
CHANGES_A_REQUEST = 5_000

_TOPIC = 2
_TOPIC_OVERRIDE = 1
"""Kafka's DYNAMIC_TOPIC_CONFIG: said of this topic, not inherited from a broker."""
_SET, _DELETE = 0, 1


@dataclass(frozen=True, slots=True)
class SettingsRead:
    """The settings of each topic that we may see, and what was refused."""

    topics: Mapping[str, TopicSettings]
    refused: Mapping[str, Refusal]


async def read_settings(
    client: RawClient, topics: Iterable[str], keys: Iterable[str] | None = None, node_id: int | None = None
) -> SettingsRead:
    """All settings of these topics, or those of some keys only, as one broker knows them, any where none is named."""
    found: dict[str, TopicSettings] = {}
    refused: dict[str, Refusal] = {}
    resource = DescribeConfigsRequest.DescribeConfigsResource
    asked = None if keys is None else list(keys)
    for portion in portions(topics, lambda _: 1, TOPICS_A_REQUEST):
        request = DescribeConfigsRequest(
            resources=[
                resource(resource_type=_TOPIC, resource_name=topic, configuration_keys=asked) for topic in portion
            ],
            include_synonyms=False,
            include_documentation=False,
        )
        for result in (await client.request(request, node_id)).results:
            failed = refusal(result.error_code, result.error_message)
            if failed is not None:
                refused[result.resource_name] = failed
                continue
            effective = {entry.name: entry.value for entry in result.configs if entry.value is not None}
            overrides = {
                entry.name: entry.value
                for entry in result.configs
                if entry.config_source == _TOPIC_OVERRIDE and entry.value is not None
            }
            found[result.resource_name] = TopicSettings(overrides, effective)
    return SettingsRead(found, refused)


async def change_settings(client: RawClient, changes: Iterable[SettingChange]) -> dict[str, Refusal]:
    """Set and reset overrides, those of one topic together or not at all; what was refused, by topic."""
    by_topic: dict[str, list[SettingChange]] = {}
    for change in changes:
        by_topic.setdefault(change.topic, []).append(change)
    refused: dict[str, Refusal] = {}
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    for portion in portions(by_topic.items(), lambda topic: len(topic[1]), CHANGES_A_REQUEST):
        request = IncrementalAlterConfigsRequest(
            resources=[
                resource(
                    resource_type=_TOPIC,
                    resource_name=topic,
                    configs=[
                        resource.AlterableConfig(
                            name=change.name,
                            config_operation=_DELETE if change.after is None else _SET,
                            value=change.after,
                        )
                        for change in wanted
                    ],
                )
                for topic, wanted in portion
            ],
            validate_only=False,
        )
        for result in (await client.request(request, client.controller())).responses:
            if (failed := refusal(result.error_code, result.error_message)) is not None:
                refused[result.resource_name] = failed
    return refused
