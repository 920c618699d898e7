"""Settings of other mirrors that Twinlog has no use for, each with the reason a reader is given.

A table is looked through from its top; patterns match the whole key, without cluster or flow in front.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

Reasons = Sequence[tuple[str, str]]

_CONNECT_WORKER = "it belongs to the Kafka Connect worker; Twinlog runs on Spark and Airflow and has none"
_METRICS = "metrics come from the status command, the Mirroring page and Airflow"
_CONVERTERS = "records are copied as bytes, so nothing is converted"
_TRANSFORMS = "single message transforms have no counterpart; see route: records with where and select"
_JAVA_FILTER = "the filter is a Java class; write one in Python and name it in {}"
_EXACTLY_ONCE = "copying is exactly once always"

CONNECT: Reasons = (
    (r"name", "it names the connector; a flow is named after its clusters"),
    (r"connector\.class", "Twinlog is not a connector"),
    (r"(key|value|header)\.converter(\..*)?", _CONVERTERS),
    (r"(transforms|predicates)(\..*)?", _TRANSFORMS),
    (
        r"(errors|topic\.creation|tasks\.max\.enforce)(\..*)?",
        "it is about how Kafka Connect runs a connector",
    ),
    (r"exactly\.once\..*|transaction\.boundary(\..*)?", _EXACTLY_ONCE),
    (r"(offset|config|status)\.storage\..*|offsets\.storage\.topic|offset\.flush\..*", _CONNECT_WORKER),
    (
        r"(rest|listeners|admin\.listeners|plugin|worker|task|access\.control|inter\.worker)(\..*)?",
        _CONNECT_WORKER,
    ),
    (
        r"group\.id|scheduled\.rebalance\..*|rebalance\..*|session\.timeout\.ms|heartbeat\.interval\.ms",
        _CONNECT_WORKER,
    ),
    (r"connector\.client\.config\.override\.policy|response\.http\..*", _CONNECT_WORKER),
    (r"metric\.reporters|metrics\..*|add\.source\.alias\.to\.metrics", _METRICS),
    (r"config\.providers(\..*)?", "Twinlog resolves ${env:...} and ${file:...} itself"),
    (r"config\.action\.reload", "secrets are read anew by every run"),
)

MM2: Reasons = (
    (r"dedicated\.mode\.enable\.internal\.rest", _CONNECT_WORKER),
    (r"offset\.lag\.max", "translation is exact, so there is no lag of offset syncs to allow"),
    (r"consumer\.poll\.timeout\.ms", "a run reads up to a planned end and does not poll"),
    (r"admin\.timeout\.ms", "the admin clients' request.timeout.ms and default.api.timeout.ms say this"),
    (r"topic\.filter\.class", _JAVA_FILTER.format("topic.filter")),
    (r"group\.filter\.class", _JAVA_FILTER.format("group.filter")),
    (r"config\.property\.filter\.class", _JAVA_FILTER.format("config.filter")),
    (r"forwarding\.admin\.class", "it is a Java class; topics are managed through Kafka's own protocol"),
    (
        r"replication\.policy\.internal\.topic\.separator\.enabled",
        "Twinlog's internal topics have fixed names",
    ),
    (r"use\.incremental\.alter\.configs", "settings are always altered incrementally"),
    (
        r"(checkpoints|heartbeats|offset-syncs)\.topic\..*",
        "Twinlog's internal topics have fixed names and settings",
    ),
    *CONNECT,
)

REPLICATOR: Reasons = (
    (r"src\.(key|value|header)\.converter(\..*)?", _CONVERTERS),
    (r"provenance\.header\.enable", "false is Twinlog's default"),
    (r"provenance\..*", "the journal tells mirrored records from others, without headers"),
    (r"topic\.auto\.create", "true is what Twinlog does: missing topics are created"),
    (r"topic\.preserve\.partitions", "true is what Twinlog does: partition counts are kept"),
    (r"topic\.create\.backoff\.ms", "a run creates topics before it copies"),
    (r"topic\.timestamp\.type", "timestamps are kept as the source's readers saw them"),
    (
        r"offset\.(timestamps|topic)\.commit",
        "positions and checkpoints are kept on the target; see the ledger",
    ),
    (r"offset\.start", "Twinlog starts at its own positions; see topics.from for topics that have none"),
    (
        r"(offset\.translator|fetch\.offset)\..*",
        "translation is exact and part of every run; it needs no tuning",
    ),
    (r"src\.consumer\.group\.id", "positions are kept on the target, not in a group of the source"),
    (r"schema\..*", "the schema registry is not mirrored; its topic can be, if listed in topics"),
    (r"confluent\..*|license.*", "it belongs to Confluent's licence check"),
    (r"dest\.zookeeper\..*|src\.zookeeper\..*", "clusters are reached through their brokers only"),
    *CONNECT,
)

MM1: Reasons = (
    (r"abort\.on\.send\.failure", "a run that cannot write always stops, and its transaction is aborted"),
    (r"offset\.commit\.interval\.ms", "positions are committed with the records; see transaction.seconds"),
    (
        r"(consumer\.)?rebalance\.listener(\.args)?",
        "it is a Java class, and there is no consumer group to rebalance",
    ),
    (r"message\.handler(\.args)?", "it is a Java class; see route: records with where and select"),
    (r"new\.consumer|num\.producers|queue\.(byte\.)?size", "it is of an older MirrorMaker"),
    (r"zookeeper\..*", "clusters are reached through their brokers only"),
    (r"group\.id", "positions are kept on the target, not in a group of the source"),
    (r"exclude\.internal\.topics", "internal topics are never mirrored"),
    (r"enable\.auto\.commit|auto\.commit\..*", "positions are committed with the records"),
    (r"(key|value)\.(de)?serializer", _CONVERTERS),
    (r"interceptor\.classes|partitioner\.class|partition\.assignment\.strategy", "it is a Java class"),
    *CONNECT,
)


def reason_for(key: str, reasons: Reasons) -> str | None:
    """Why the key is left out, or None where the table does not know it."""
    return next((reason for pattern, reason in reasons if re.fullmatch(pattern, key)), None)
