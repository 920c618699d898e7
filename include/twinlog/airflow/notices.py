"""Telling people that something is wrong with a flow, or waits for them, through any of Airflow's notifiers.

Which ones is said in airflow.cfg, as JSON; what a notifier takes as a template may use `notice`:

    [twinlog]
    notifiers = [{"class": "airflow.providers.smtp.notifications.smtp.SmtpNotifier", "to": "oncall@example.com",
                  "subject": "{{ notice.title }}", "html_content": "{{ notice.text }}"},
                 {"class": "twinlog.airflow.webhook.WebhookNotifier", "connection_id": "oncall_hook"}]

It is no part of the topology: who edits that must not be able to have a class of their choice run. A notifier that
fails is named in the task's log and keeps neither the others nor the task from going on.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier

from twinlog.airflow.settings import notifiers

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)


class NoticeKind(StrEnum):
    """What a notice is about."""

    LAG = "lag"
    """Further behind than the flow's recovery point allows."""
    RECOVERY_TIME = "recovery_time"
    """The last drill or takeover took longer than the flow's recovery time allows."""
    UNREACHABLE = "unreachable"
    DIFFERENT = "different"
    """The two sides are not equal."""
    FAILED = "failed"
    """A run ended as failed."""
    TAKEOVER = "takeover"
    """The target of a flow has taken its source's place."""
    DECISION = "decision"
    """A person is to approve or to reject."""


@dataclass(frozen=True)
class Notice:
    """One thing to be told."""

    kind: NoticeKind
    flow: str
    title: str
    """One line."""
    text: str = ""
    over: bool = False
    """Whether it is good news: what was told before holds no longer."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """For programs; never a secret."""
    link: str | None = None
    """Where to look; that of the task where none is given."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def tell(context: Context, notice: Notice) -> None:
    """Tell it, in a task, to whoever airflow.cfg names."""
    if notice.link is None:
        notice = replace(notice, link=getattr(context.get("ti"), "log_url", None))
    log.log(logging.INFO if notice.over else logging.WARNING, "%s", notice.title)
    for name, notifier in _notifiers():
        try:
            notifier({**context, "notice": notice})
        except Exception as failure:  # noqa: BLE001 - it is other people's code, and the task's work is not about it
            log.warning("%s could not tell it: %s: %s", name, type(failure).__name__, failure)


TOLD = "told"
"""In a task's result: the kinds that hold, for the next run's `told_before`."""


def told_before(context: Context, task_id: str) -> list[str]:
    """What that task of the run before has told. Who starts one by hand is told anew."""
    ti = context["ti"]
    previous = ti.get_previous_dagrun()
    if previous is None:
        return []
    told: list[str] = (ti.xcom_pull(task_ids=task_id, run_id=previous.run_id) or {}).get(TOLD, [])
    return told


def tell_changes(context: Context, notices: Sequence[Notice], before: Collection[str]) -> list[str]:
    """Tell what was not told `before`, by kind, and what is over; the kinds that hold now, for the next time.

    Who looks at a flow every few minutes says so once when something begins, and once when it has ended.
    """
    now = {notice.kind: notice for notice in notices if not notice.over}
    for kind, notice in now.items():
        if kind not in before:
            tell(context, notice)
    for notice in notices:
        if notice.over and notice.kind in before:
            tell(context, notice)
    return sorted(now)


class FailureNotifier(BaseNotifier):
    """The callback of a task that failed for good; of runs that fail one after the other, the first is told."""

    def __init__(self, flow_name: str) -> None:
        super().__init__()
        self.flow_name = flow_name

    def notify(self, context: Context) -> None:
        ti, failure = context["ti"], context.get("exception")
        previous = ti.get_previous_dagrun()
        if previous is not None and previous.state == "failed":
            log.info("the run before failed too, so nobody is told again")
            return
        title = f"{self.flow_name}: {ti.task_id} of {ti.dag_id} failed"
        tell(context, Notice(NoticeKind.FAILED, self.flow_name, title, text=f"{failure}" if failure else ""))


def _notifiers() -> Iterator[tuple[str, BaseNotifier]]:
    for arguments in notifiers():
        name = arguments["class"]
        try:
            module, _, kind = name.rpartition(".")
            made = getattr(import_module(module), kind)(**{key: arguments[key] for key in arguments if key != "class"})
        except (ImportError, AttributeError, TypeError, ValueError) as failure:
            log.warning("the notifier %s could not be made: %s", name, failure)
            continue
        yield name, made
