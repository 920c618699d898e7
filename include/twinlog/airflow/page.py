"""The Mirroring page: which flows there are, and how each one's last status run ended.

What always holds: every route, the static files too, answers only a user who is logged in to Airflow; a
user sees the runs of the DAGs that Airflow lets them read; what is sent holds cluster aliases and settings
of flows, never client settings or connections.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep, requires_authenticated
from airflow.models.dagrun import DagRun
from airflow.models.xcom import XComModel
from fastapi import Depends, FastAPI, Response
from fastapi.responses import FileResponse, JSONResponse
from sqlalchemy import func, select

from twinlog.airflow.ids import dag_ids
from twinlog.airflow.settings import topology_path
from twinlog.airflow.tasks.reach import RESULT_KEY
from twinlog.airflow.tasks.status import STATUS_TASK
from twinlog.errors import TwinlogError
from twinlog.intake.topology_file import load

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from twinlog.model.topology import Flow

STATUS_VERB = "status"

_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'self'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class LastRun:
    """How the newest status run of a flow ended."""

    dag_id: str
    run_id: str
    state: str
    ended: str | None
    result: Any


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
            topology = load(topology_path())
        except TwinlogError as error:
            return JSONResponse({"error": str(error)}, status_code=503, headers=_HEADERS)
        ids = dag_ids(STATUS_VERB, topology.flows)
        readable = get_auth_manager().get_authorized_dag_ids(user=user, session=session)
        runs = _last_runs(session, readable & set(ids.values()))
        rows = [_row(flow, ids[flow.name], runs) for flow in topology.flows.values()]
        return JSONResponse({"topology": topology.path, "flows": rows}, headers=_HEADERS)

    return app


def _row(flow: Flow, dag_id: str, runs: Mapping[str, LastRun]) -> dict[str, Any]:
    run = runs.get(dag_id)
    return {
        "flow": flow.name,
        "source": flow.source,
        "target": flow.target,
        "naming": flow.naming,
        "schedule": flow.schedule,
        "dag_id": dag_id,
        "last_run": None if run is None else asdict(run),
    }


def _last_runs(session: Session, ids: set[str]) -> dict[str, LastRun]:
    """The newest run of each DAG with what its status task returned: two queries for any number of flows."""
    newest = select(func.max(DagRun.id)).where(DagRun.dag_id.in_(ids)).group_by(DagRun.dag_id)
    runs = session.scalars(select(DagRun).where(DagRun.id.in_(newest))).all()
    results = {
        value.dag_run_id: XComModel.deserialize_value(value)
        for value in session.scalars(
            select(XComModel).where(
                XComModel.dag_run_id.in_([run.id for run in runs]),
                XComModel.task_id == STATUS_TASK,
                XComModel.key == RESULT_KEY,
            )
        )
    }
    return {
        run.dag_id: LastRun(
            run.dag_id,
            run.run_id,
            str(run.state),
            run.end_date.isoformat() if run.end_date else None,
            results.get(run.id),
        )
        for run in runs
    }
