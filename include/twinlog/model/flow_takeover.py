"""A flow's settings about taking over: what is called when it happens, and whether it may happen by itself."""

from __future__ import annotations

from dataclasses import dataclass

from twinlog.model.kinds import Boolean, Integer, Text
from twinlog.model.settings import setting

_TAKEOVER = "Taking over"


@dataclass(frozen=True, kw_only=True)
class TakeoverSettings:
    """What a failover, a switchover and a failback do beside Kafka, and when a failover may begin by itself."""

    hook_command: str | None = setting(
        "hook.command",
        None,
        Text(),
        "A command that is run after topics were promoted, and after a failback, to change DNS or service discovery: "
        "words divided as a shell does, and run without one. What has happened is on its standard input as JSON, and "
        "in `TWINLOG_EVENT`, `TWINLOG_FLOW`, `TWINLOG_ACTIVE` and `TWINLOG_BOOTSTRAP_SERVERS`. It may be run twice "
        "for the same event, where a takeover was interrupted.",
        section=_TAKEOVER,
    )
    hook_webhook: str | None = setting(
        "hook.webhook",
        None,
        Text(),
        "An http or https address that the same JSON is posted to. An address that is secret is written as a "
        "reference (`${env:NAME}` or `${file:/path}`).",
        section=_TAKEOVER,
    )
    hook_dag: str | None = setting(
        "hook.dag",
        None,
        Text(),
        "The id of an Airflow DAG of your own that the DAGs `failover`, `switchover`, `watch` and `failback` trigger "
        "after the other hooks, with the same JSON as its conf, and wait for. Only Airflow can call it: a takeover by "
        "the command line, or one that the command line goes on with, calls the other hooks alone.",
        section=_TAKEOVER,
    )
    hook_timeout_seconds: int = setting(
        "hook.timeout.seconds",
        60,
        Integer(1),
        "How long a hook may take.",
        section=_TAKEOVER,
    )
    failover_automatic: bool = setting(
        "failover.automatic",
        False,
        Boolean(),
        "Whether `twinlog failover --watch`, and its DAG, fail over by themselves once every probe has found the "
        "source gone for `failover.automatic.after.seconds`. Groups go on where they stopped (`translated`).",
        section=_TAKEOVER,
    )
    failover_automatic_after_seconds: int = setting(
        "failover.automatic.after.seconds",
        120,
        Integer(1),
        "How long all probes must have agreed that the source is gone, without a break.",
        section=_TAKEOVER,
    )
    failover_probe_seconds: int = setting(
        "failover.probe.seconds",
        10,
        Integer(1),
        "How often the probes are asked, and how long each may take to answer.",
        section=_TAKEOVER,
    )
    failover_probe_heartbeat_seconds: int = setting(
        "failover.probe.heartbeat.seconds",
        60,
        Integer(1),
        "A probe: the source counts as gone where the newest heartbeat that has reached the target is older than this.",
        section=_TAKEOVER,
    )
    failover_probe_command: str | None = setting(
        "failover.probe.command",
        None,
        Text(),
        "A probe more: a command, as in `hook.command`, that looks at the source from elsewhere. It ends with 0 where "
        "the source is alive and with 1 where it is gone; any other end is no vote, and nothing happens without all.",
        section=_TAKEOVER,
    )
    failover_probe_url: str | None = setting(
        "failover.probe.url",
        None,
        Text(),
        "A probe more: an address that answers with a status of 200 to 399 for as long as the source is alive.",
        section=_TAKEOVER,
    )
