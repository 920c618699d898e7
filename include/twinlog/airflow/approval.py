"""A person's yes between a plan and what is done by it:

    plan  ->  approve  ->  ...

    with flow_dag("failover", topology, flow, summary=..., by_hand=True, params={**own_params(), **asking_params()},
                  run_timeout=ANSWER_WITHIN + timedelta(hours=1)):
        plan(flow.name) >> Approval(flow_name=flow.name, plan_task="plan") >> carry_out(flow.name)

The plan's task returns its result with the question in it (`with_question`); the task that does it finds the plan as
that task's result. Nobody's answer is no: after the time has run out, as after a rejection, everything behind is
skipped. While it waits it holds neither a slot of a pool nor a worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import BaseNotifier, Param

from twinlog.airflow.frame import NO_POOL
from twinlog.airflow.notices import Notice, NoticeKind, tell

if TYPE_CHECKING:
    from airflow.sdk import Context

APPROVE_TASK = "approve"
ANSWER_WITHIN = timedelta(hours=1)
"""A plan grows old; who comes later starts another run, with a new one."""
WITHOUT_ASKING = "without_asking"

MOST_ROWS = 50
_QUESTION = "question"


def asking_params() -> dict[str, Param]:
    """The field of the form by which whoever starts the run has approved it."""
    return {
        WITHOUT_ASKING: Param(
            False,
            type="boolean",
            title="Go ahead without asking",
            description="Carry the plan out as soon as it is made. Otherwise the run waits for somebody to read and "
            "approve it, and ends without having changed anything if nobody does.",
        )
    }


def with_question(result: Mapping[str, Any], subject: str, body: str) -> dict[str, Any]:
    """A plan's result for its task to return; `body` is Markdown."""
    return {**result, _QUESTION: {"subject": subject, "body": body}}


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown, cut to what a person reads, with how many rows were left out."""
    everything = [[_cell(value) for value in row] for row in rows]
    lines = [_line(columns), _line(["---"] * len(columns)), *(_line(row) for row in everything[:MOST_ROWS])]
    if len(everything) > MOST_ROWS:
        lines += ["", f"and {len(everything) - MOST_ROWS:,} more"]
    return "\n".join(lines)


def approved_by(context: Context) -> str | None:
    """Who approved, for the result of what was done; None where whoever started the run had."""
    answer = context["ti"].xcom_pull(task_ids=APPROVE_TASK) or {}
    user = answer.get("responded_by_user") or {}
    return user.get("name") or user.get("id")


class Approval(ApprovalOperator):
    """Asks what the plan's result says, and tells those who are told of things (see `airflow.notices`)."""

    def __init__(
        self,
        *,
        flow_name: str,
        plan_task: str,
        within: timedelta = ANSWER_WITHIN,
        always_asks: bool = False,
        **kwargs: Any,
    ) -> None:
        """With `always_asks`, whoever started the run has not approved this by the form."""
        kwargs.setdefault("task_id", APPROVE_TASK)
        self._always_asks = always_asks
        question = f"ti.xcom_pull(task_ids='{plan_task}')['{_QUESTION}']"
        super().__init__(
            subject=f"{{{{ {question}['subject'] }}}}",
            body=f"{{{{ {question}['body'] }}}}",
            defaults=self.REJECT,
            response_timeout=within,
            # What is behind may run whatever became of what is before it; not so where a person said no.
            ignore_downstream_trigger_rules=True,
            notifiers=DecisionNotifier(flow_name),
            pool=NO_POOL,
            **kwargs,
        )

    def execute(self, context: Context) -> Any:
        """Ends here where whoever started the run approved; otherwise the task waits, and costs nothing."""
        if context["params"].get(WITHOUT_ASKING) and not self._always_asks:
            self.log.info("approved by whoever started the run")
            return None
        return super().execute(context)


class DecisionNotifier(BaseNotifier):
    """Tells that a run waits for a person."""

    def __init__(self, flow_name: str) -> None:
        super().__init__()
        self.flow_name = flow_name

    def notify(self, context: Context) -> None:
        asked: Any = context["task"]
        link = asked.generate_link_to_ui_from_context(context=context)
        tell(context, Notice(NoticeKind.DECISION, self.flow_name, asked.subject, text=asked.body or "", link=link))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: object) -> str:
    return "" if value is None else str(value).replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
