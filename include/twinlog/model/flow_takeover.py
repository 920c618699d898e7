"""A flow's settings about taking over: what is called when it happens."""

from __future__ import annotations

from dataclasses import dataclass

from twinlog.model.kinds import Integer, Text
from twinlog.model.settings import setting

_TAKEOVER = "Taking over"


@dataclass(frozen=True, kw_only=True)
class TakeoverSettings:
    """What a failover, a switchover and a failback do beside Kafka."""

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
    hook_timeout_seconds: int = setting(
        "hook.timeout.seconds",
        60,
        Integer(1),
        "How long a hook may take.",
        section=_TAKEOVER,
    )
