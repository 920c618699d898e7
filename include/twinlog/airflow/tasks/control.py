"""The task by which people pause, resume and drain a flow, and the form that they fill in for it."""

from __future__ import annotations

import logging
from typing import Any

from airflow.sdk import Param, get_current_context, task

from twinlog.airflow.frame import NO_POOL
from twinlog.airflow.tasks.reach import TaskReach

log = logging.getLogger(__name__)

CONTROL_TASK = "control"
ACTION = "action"
THROTTLE = "throttle"
ACTIONS = ("pause", "resume", "drain", THROTTLE)
RATE = "rate"
WAIT_SECONDS = "wait_seconds"
MOST_WAIT_SECONDS = 3600


def control_params() -> dict[str, Param]:
    """The fields of the form."""
    return {
        ACTION: Param(
            "pause",
            type="string",
            enum=list(ACTIONS),
            title="What to do",
            description="pause: no run starts any more, and one that is under way commits what it has and ends. drain: "
            "the same, and this run succeeds only when nothing of the flow writes to the target any more. resume: runs "
            "start again. throttle: the run that is under way writes at the rate below from now on. It holds for every "
            "Airflow and for the command line, until somebody changes it; a rate until the next ordinary run, which "
            "begins with the topology's.",
        ),
        RATE: Param(
            None,
            type=["null", "number"],
            exclusiveMinimum=0,
            title="Rate (MB/s)",
            description="For throttle: over all tasks; left empty, as fast as it goes.",
        ),
        WAIT_SECONDS: Param(
            600,
            type="integer",
            minimum=1,
            maximum=MOST_WAIT_SECONDS,
            title="How long to wait (seconds)",
            description="For draining: fail when the run that is under way has not ended by then. The flow stays "
            "paused.",
        ),
    }


@task(task_id=CONTROL_TASK, pool=NO_POOL)
def control(flow_name: str) -> dict[str, Any]:
    """What the form says, done."""
    from twinlog.operations.control import Action  # noqa: PLC0415 - brings the Kafka clients
    from twinlog.operations.control import control as act  # noqa: PLC0415 - as above

    params = get_current_context()["params"]
    reach = TaskReach(flow_name)
    if params[ACTION] == THROTTLE:
        return _throttle(reach, params[RATE])
    done = act(reach.flow, reach.access("target"), Action(params[ACTION]), timeout_s=float(params[WAIT_SECONDS]))
    log.info("%s", done.sentence)
    return done.to_json()


def _throttle(reach: TaskReach, rate: float | None) -> dict[str, Any]:
    from twinlog.operations.throttling import change_throttle  # noqa: PLC0415 - brings the Kafka clients

    before = change_throttle(reach.flow, reach.access("target"), rate)
    log.info("%s: throttle %s MB/s, was %s", reach.flow.name, rate or "none", before or "none")
    return {"flow": reach.flow.name, "throttle": rate, "before": before}
