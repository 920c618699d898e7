"""The Mirroring page: which flows there are, how each of them is, and how its last runs went.

What always holds: every route, the static files too, answers only a user who is logged in to Airflow; a
user sees the runs of the DAGs that Airflow lets them read; what is sent holds cluster aliases and settings
of flows, never client settings or connections.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep, requires_authenticated
from airflow.models.dagrun import DagRun
from airflow.models.xcom import XComModel
from fastapi import Depends, FastAPI, Response
from fastapi.responses import FileResponse, JSONResponse
from sqlalchemy import func, select, tuple_

from twinlog.airflow.ids import dag_ids
from twinlog.airflow.progress import PROGRESS_KEY
from twinlog.airflow.settings import topology_path
from twinlog.airflow.tasks.mirror import COPY_TASK, PLAN_TASK, RECORD_TASK
from twinlog.airflow.tasks.reach import RESULT_KEY
from twinlog.airflow.tasks.status import STATUS_TASK
from twinlog.airflow.topology import topology_in_use
from twinlog.errors import TwinlogError
from twinlog.intake.topology_file import load

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from twinlog.model.topology import Flow

VERBS = (
    "mirror",
    "control",
    "status",
    "sync",
    "reconcile",
    "repair",
    "switchover",
    "failover",
    "failback",
    "drill",
    "migrate",
)
"""Whose DAGs a flow's row leads to, where Airflow has them; their forms are behind the button "Trigger"."""

_SHOWN = {
    "status": ((STATUS_TASK, RESULT_KEY),),
    "mirror": ((PLAN_TASK, RESULT_KEY), (COPY_TASK, PROGRESS_KEY), (RECORD_TASK, RESULT_KEY)),
}
"""The verbs whose last run is shown, and what of its tasks: task and key."""

_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'self'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class LastRun:
    """How the newest run of a DAG goes or ended; `results` by task."""

    dag_id: str
    run_id: str
    state: str
    ended: str | None
    results: Mapping[str, Any]


def application(static: Path) -> FastAPI:
    """The application to be mounted; `static` holds mirroring.html, mirroring.js and mirroring.css."""
    # The interactive documentation is left out: it would be open to all and loads its scripts from elsewhere.
    app = FastAPI(
        title="Twinlog",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        dependencies=[Depends(requires_authenticated())],
    )

    @app.get("/")
    def page() -> Response:
        return FileResponse(static / "mirroring.html", headers=_HEADERS)

    @app.get("/mirroring.js")
    def script() -> Response:
        return FileResponse(static / "mirroring.js", headers=_HEADERS)

    @app.get("/mirroring.css")
    def style() -> Response:
        return FileResponse(static / "mirroring.css", headers=_HEADERS)

    @app.get("/api/flows")
    def flows(user: GetUserDep, session: SessionDep) -> Response:
        try:
            topology = topology_in_use()
        except TwinlogError as error:
            return JSONResponse({"error": str(error)}, status_code=503, headers=_HEADERS)
        ids = {verb: dag_ids(verb, topology.flows) for verb in VERBS}
        readable = get_auth_manager().get_authorized_dag_ids(user=user, session=session)
        shown = {dag_id for verb in _SHOWN for dag_id in ids[verb].values()}
        runs = _last_runs(session, readable & shown)
        rows = []
        for flow in topology.flows.values():
            dags = {verb: ids[verb][flow.name] for verb in VERBS if ids[verb][flow.name] in readable}
            rows.append(_row(flow, dags, runs))
        answer = {"topology": topology.path, "problem": _problem(), "flows": rows}
        return JSONResponse(answer, headers=_HEADERS)

    return app


def _problem() -> str | None:
    """What is wrong with the topology file as it stands; the flows go on by its last good version."""
    try:
        load(topology_path())
    except TwinlogError as error:
        return str(error)
    return None


def _row(flow: Flow, dags: Mapping[str, str], runs: Mapping[str, LastRun]) -> dict[str, Any]:
    status, mirror = (runs.get(dags.get(verb, "")) for verb in ("status", "mirror"))
    return {
        "flow": flow.name,
        "source": flow.source,
        "target": flow.target,
        "naming": flow.naming,
        "schedule": flow.schedule if flow.enabled else None,
        "enabled": flow.enabled,
        "dags": dags,
        "last_run": None if status is None else {**_of(status), "result": status.results.get(STATUS_TASK)},
        "last_mirror": None if mirror is None else {**_of(mirror), **_mirrored(mirror.results)},
    }


def _of(run: LastRun) -> dict[str, Any]:
    return {"dag_id": run.dag_id, "run_id": run.run_id, "state": run.state, "ended": run.ended}


def _mirrored(results: Mapping[str, Any]) -> dict[str, Any]:
    """What a mirror run has to say for itself, as far as it has come."""
    plan = results.get(PLAN_TASK) or {}
    return {
        "refused": plan.get("refused"),
        "due": plan.get("due"),
        "progress": results.get(COPY_TASK),
        "recorded": results.get(RECORD_TASK),
    }


def _last_runs(session: Session, ids: set[str]) -> dict[str, LastRun]:
    """The newest run of each DAG with what its tasks have left: two queries for any number of flows."""
    newest = select(func.max(DagRun.id)).where(DagRun.dag_id.in_(ids)).group_by(DagRun.dag_id)
    runs = session.scalars(select(DagRun).where(DagRun.id.in_(newest))).all()
    wanted = sorted({one for shown in _SHOWN.values() for one in shown})
    results: dict[int, dict[str, Any]] = {run.id: {} for run in runs}
    for value in session.scalars(
        select(XComModel).where(
            XComModel.dag_run_id.in_(list(results)), tuple_(XComModel.task_id, XComModel.key).in_(wanted)
        )
    ):
        results[value.dag_run_id][value.task_id] = XComModel.deserialize_value(value)
    return {
        run.dag_id: LastRun(
            run.dag_id,
            run.run_id,
            str(run.state),
            run.end_date.isoformat() if run.end_date else None,
            results[run.id],
        )
        for run in runs
    }
