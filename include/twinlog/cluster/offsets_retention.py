"""How long a cluster remembers the committed offsets of a group without members."""

from __future__ import annotations

from kafka.protocol.admin import DescribeConfigsRequest

from twinlog.cluster.raw import RawClient

BROKER_RESOURCE = 4
RETENTION_MINUTES = "offsets.retention.minutes"
DEFAULT_RETENTION_MINUTES = 7 * 24 * 60
"""Kafka's own default, for a cluster whose setting we may not read."""


async def offsets_retention_s(client: RawClient) -> float:
    """The setting of one broker, which stands for all."""
    node_id = min(broker.node_id for broker in client.brokers())
    answer = await client.request(
        DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=BROKER_RESOURCE,
                    resource_name=str(node_id),
                    configuration_keys=[RETENTION_MINUTES],
                )
            ],
            include_synonyms=False,
            include_documentation=False,
        ),
        node_id,
    )
    said = [
        entry.value
        for result in answer.results
        if not result.error_code
        for entry in result.configs
        if entry.name == RETENTION_MINUTES and entry.value
    ]
    return float(said[0] if said else DEFAULT_RETENTION_MINUTES) * 60
