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
ACTIONS = ("pause", "resume", "drain")
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
            "start again. It holds for every Airflow and for the command line, until somebody changes it.",
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
    done = act(reach.flow, reach.access("target"), Action(params[ACTION]), timeout_s=float(params[WAIT_SECONDS]))
    log.info("%s", done.sentence)
    return done.to_json()
