"""The task that proves the twin equal, on the Spark that the flow's connection leads to, and tells where it is not."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param, get_current_context, task

from twinlog.airflow.metrics import send, tells_errors
from twinlog.airflow.notices import TOLD, FailureNotifier, Notice, NoticeKind, tell_changes, told_before
from twinlog.airflow.params import moment_ms, moment_param
from twinlog.airflow.settings import own_folder
from twinlog.airflow.spark_place import spark_place
from twinlog.airflow.tasks.mirror import LISTED_AT_MOST, listed
from twinlog.airflow.tasks.reach import RESULT_KEY, TaskReach
from twinlog.errors import ConfigurationError, DifferenceError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from twinlog.operations.reconcile import Scope
    from twinlog.operations.reconcile_result import Reconciliation

log = logging.getLogger(__name__)

RECONCILE_TASK = "reconcile"

SINCE = "since"
TOPICS = "topics"
FULL = "full"
DEEP = "deep"
RATE = "rate"


class OtherFailures(FailureNotifier):
    """Tells of every failure but that something differs, which the task tells itself."""

    def notify(self, context: Context) -> None:
        if not isinstance(context.get("exception"), DifferenceError):
            super().notify(context)


def reconcile_params() -> dict[str, Param]:
    """The form; one that is left as it is looks at what is new, and at a share of the rest."""
    return {
        SINCE: moment_param(
            "Window: copied since",
            "Only what was copied at this time or later. Without one, what is new and a share of the rest, so that all "
            "is proven again within reconcile.everything.within.days.",
        ),
        TOPICS: Param(
            None,
            type=["null", "string"],
            title="Only these topics",
            description="A pattern; only source topics whose whole name matches it are looked at.",
        ),
        FULL: Param(
            False,
            type="boolean",
            title="Everything",
            description="Everything that both logs still hold, however large that is.",
        ),
        DEEP: Param(
            False,
            type="boolean",
            title="Record by record",
            description="Open every record instead of comparing the digests of whole batches: much slower, and "
            "stronger than the 2^-32 that a digest leaves to chance.",
        ),
        RATE: Param(
            None,
            type=["null", "number"],
            exclusiveMinimum=0,
            title="Rate limit (MB/s)",
            description="Read no more than this from each cluster; by default what reconcile.throttle says.",
        ),
    }


def asked_scope(params: Mapping[str, Any]) -> Scope:
    """What the form was filled in with."""
    from twinlog.operations.reconcile import Scope  # noqa: PLC0415 - brings the Kafka clients

    since = params.get(SINCE)
    return Scope(
        since_ms=moment_ms(SINCE, since) if since else None,
        topics=asked_pattern(params.get(TOPICS)),
        full=bool(params.get(FULL)),
        deep=bool(params.get(DEEP)),
        rate=params.get(RATE),
    )


def asked_pattern(text: str | None) -> str | None:
    """What the field for topics was filled in with."""
    try:
        re.compile(text or "")
    except re.error as wrong:
        raise ConfigurationError(f"{TOPICS}: {text!r} is no pattern: {wrong}") from None
    return text or None


@task(task_id=RECONCILE_TASK)
@tells_errors(RECONCILE_TASK)
def reconcile(flow_name: str) -> dict[str, Any]:
    """Both logs compared by the ledger; fails where they differ, with the differences in its result."""
    from twinlog.operations.metrics import reconcile_samples  # noqa: PLC0415 - brings the Kafka clients

    context = get_current_context()
    reach = TaskReach(flow_name)
    before = _verdict_before(reach)
    done = _compare(reach, asked_scope(context["params"]))
    send(reconcile_samples(done))
    for note in done.notes[:LISTED_AT_MOST]:
        log.warning("%s", note)
    log.info("%s; report: %s", done.sentence, done.report)
    told = _tell(context, done, told_before(context, RECONCILE_TASK), before)
    result = {**listed(done.to_json(), "differences", "notes"), TOLD: told}
    if done.differences:
        # A failed task returns nothing, and it is the failed ones of which people want to see what differs.
        context["ti"].xcom_push(key=RESULT_KEY, value=result)
        for one in done.differences[:LISTED_AT_MOST]:
            log.warning("  %s", one.to_json())
        raise DifferenceError(f"{done.sentence}; report: {done.report}")
    return result


def _compare(reach: TaskReach, scope: Scope) -> Reconciliation:
    from twinlog.operations.prove_on_spark import prove_on_spark  # noqa: PLC0415 - brings the Kafka clients
    from twinlog.operations.reconcile import Reconciling  # noqa: PLC0415 - as above
    from twinlog.operations.spark_session import most_tasks, spark_session  # noqa: PLC0415 - as above

    flow = reach.flow
    # The clients first: what is wrong with them is known before Spark is asked for anything.
    reconciling = Reconciling(reach.topology, flow, reach.ends(), reach.ledger())
    place = spark_place(reach.topology, flow)
    if not place.address:
        # A job that starts for half a minute would take longer than an hour's records.
        return reconciling.run(scope)
    with ExitStack() as stack:
        spark = stack.enter_context(spark_session(place.address, warm=flow.name, cache=own_folder()))
        beside = None
        if flow.reconcile_source_spark is not None:
            near = spark_session(flow.reconcile_source_spark, warm=f"{flow.name} source", cache=own_folder())
            beside = functools.partial(prove_on_spark, stack.enter_context(near))
        execute = functools.partial(prove_on_spark, spark)
        return reconciling.run(scope, execute, tasks=most_tasks(spark, flow.lanes), beside_source=beside)


def _verdict_before(reach: TaskReach) -> str | None:
    from twinlog.ledger.proof_state import ProofStore  # noqa: PLC0415 - brings pyarrow

    last = ProofStore(reach.ledger()).last()
    return None if last is None else last.verdict


def _tell(context: Context, done: Reconciliation, told: list[str], verdict_before: str | None) -> list[str]:
    """Once when the sides begin to differ, and once when they are equal again; a run that left something out can't tell
    that the rest is. Answers what holds, for the next run.

    The verdict before counts for the end only: somebody at the command line may have found a difference first, and
    nobody here has been told of that; or the run in between failed, and knows nothing.
    """
    if done.bounded and not done.differences:
        return told
    notice = Notice(
        NoticeKind.DIFFERENT,
        done.flow,
        done.sentence,
        text="\n".join(str(one.to_json()) for one in done.differences[:LISTED_AT_MOST]),
        over=not done.differences,
        details={"kinds": done.kinds, "report": done.report},
    )
    differed = notice.over and verdict_before == "different"
    return tell_changes(context, [notice], [NoticeKind.DIFFERENT] if differed else told)
