"""The few calls of Airflow's REST API that the demo and the tests make.

Standard library only. The password is read from Airflow's own file for each login and kept nowhere else;
neither it nor the token is part of any message.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from local.errors import LocalError

FINISHED_STATES = frozenset({"success", "failed"})
COMPONENTS = ("metadatabase", "scheduler", "triggerer", "dag_processor")

_POLL_S = 0.5
_TRIES = 5
_DATABASE = "Database error"
"""Of a request whose transaction was rolled back, so that it may be sent again: SQLite has one writer, and Airflow's
API can hold itself up there until it gives one of its own requests up."""
_REQUEST_TIMEOUT_S = 30

T = TypeVar("T")


class AirflowCallError(LocalError):
    """Airflow answered a call with an error, or not at all."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class DagRun:
    dag_id: str
    run_id: str
    state: str

    @property
    def finished(self) -> bool:
        return self.state in FINISHED_STATES


class AirflowClient:
    """Logged in as one user; logs in again by itself when the token has run out."""

    def __init__(self, url: str, user: str, password_file: Path) -> None:
        self.url = url
        self._user = user
        self._password_file = password_file
        self._token: str | None = None

    def unhealthy(self) -> list[str]:
        """The components that do not report themselves healthy; raises while the API does not answer."""
        answer = self.call("GET", "/api/v2/monitor/health", login=False)
        return [name for name in COMPONENTS if (answer.get(name) or {}).get("status") != "healthy"]

    def dag_exists(self, dag_id: str) -> bool:
        try:
            self.call("GET", f"/api/v2/dags/{quote(dag_id)}")
        except AirflowCallError as error:
            if error.status == 404:
                return False
            raise
        return True

    def await_dag(self, dag_id: str, timeout_s: float) -> None:
        """Returns once the DAG was parsed; raises at once where the DAG folder has an import error."""

        def parsed() -> bool:
            errors = self.import_errors()
            if errors:
                raise LocalError(f"Airflow could not import its DAG folder:\n{errors[0]}")
            return self.dag_exists(dag_id)

        await_condition(parsed, timeout_s, f"the DAG {dag_id} to be parsed")

    def import_errors(self) -> list[str]:
        answer = self.call("GET", "/api/v2/importErrors")
        return [row["stack_trace"] for row in answer["import_errors"]]

    def unpause(self, dag_id: str) -> None:
        self.call("PATCH", f"/api/v2/dags/{quote(dag_id)}", {"is_paused": False})

    def pause(self, dag_id: str) -> None:
        self.call("PATCH", f"/api/v2/dags/{quote(dag_id)}", {"is_paused": True})

    def runs(self, dag_id: str) -> list[DagRun]:
        """The DAG's last runs, the newest first."""
        answer = self.call("GET", f"/api/v2/dags/{quote(dag_id)}/dagRuns?order_by=-run_after&limit=50")
        return [_run(row) for row in answer["dag_runs"]]

    def await_rest(self, dag_id: str, timeout_s: float) -> None:
        """Returns once no task of a paused DAG is under way; a run that has tasks left rests until it is unpaused."""
        path = f"/api/v2/dags/{quote(dag_id)}/dagRuns/~/taskInstances"
        query = urlencode({"state": ["queued", "running", "restarting"], "limit": 1}, doseq=True)

        def rests() -> bool:
            return not self.call("GET", f"{path}?{query}")["total_entries"]

        await_condition(rests, timeout_s, f"the tasks of {dag_id} to end")

    def trigger(self, dag_id: str, conf: Mapping[str, Any] | None = None) -> DagRun:
        body = {"logical_date": None, "conf": dict(conf or {})}
        return _run(self.call("POST", f"/api/v2/dags/{quote(dag_id)}/dagRuns", body))

    def backfill(self, dag_id: str, begins: str, ends: str) -> None:
        """Airflow's own: a run for each interval of the period that has none, one after the other."""
        period = {"from_date": begins, "to_date": ends, "max_active_runs": 1, "dag_run_conf": {}}
        self.call("POST", "/api/v2/backfills", {"dag_id": dag_id, "reprocess_behavior": "none", **period})

    def run(self, run: DagRun) -> DagRun:
        return _run(self.call("GET", f"/api/v2/dags/{quote(run.dag_id)}/dagRuns/{quote(run.run_id)}"))

    def await_run(self, run: DagRun, timeout_s: float) -> DagRun:
        """The run once it has finished, whichever way."""

        def finished() -> DagRun | None:
            now = self.run(run)
            return now if now.finished else None

        return await_condition(finished, timeout_s, f"run {run.run_id} of {run.dag_id} to finish")

    def task_log(self, run: DagRun, task_id: str, try_number: int = 1) -> str:
        """The events of one try, a line each, an error's class and message below its event."""
        path = f"{self._task_path(run, task_id)}/logs/{try_number}?{urlencode({'full_content': 'true'})}"
        lines = []
        for entry in self.call("GET", path)["content"]:
            lines.append(str(entry["event"]))
            lines += [f"{error['exc_type']}: {error['exc_value']}" for error in entry.get("error_detail") or []]
        return "\n".join(lines)

    def task(self, run: DagRun, task_id: str) -> Any:
        return self.call("GET", self._task_path(run, task_id))

    def task_ids(self, run: DagRun) -> list[str]:
        path = f"/api/v2/dags/{quote(run.dag_id)}/dagRuns/{quote(run.run_id)}/taskInstances"
        return [row["task_id"] for row in self.call("GET", path)["task_instances"]]

    def result(self, run: DagRun, task_id: str, key: str = "return_value") -> Any:
        """What the task returned, or left under another key."""
        return self.call("GET", f"{self._task_path(run, task_id)}/xcomEntries/{quote(key)}")["value"]

    def links(self, run: DagRun, task_id: str) -> dict[str, str | None]:
        """The task's extra links, by name."""
        found: dict[str, str | None] = self.call("GET", f"{self._task_path(run, task_id)}/links")["extra_links"]
        return found

    def answer(self, run: DagRun, task_id: str, option: str) -> None:
        """What a person says to a task that waits for it."""
        path = f"{self._task_path(run, task_id)}/-1/hitlDetails"
        self.call("PATCH", path, {"chosen_options": [option], "params_input": {}})

    def asset_events(self, run: DagRun) -> dict[str, dict[str, Any]]:
        """The extra of each asset that the run has updated, by the asset's URI."""
        query = urlencode({"source_dag_id": run.dag_id, "source_run_id": run.run_id, "limit": 100})
        return {row["uri"]: row["extra"] for row in self.call("GET", f"/api/v2/assets/events?{query}")["asset_events"]}

    def put_pool(self, name: str, slots: int) -> None:
        """Creates the pool; one that is there is left as it is."""
        try:
            self.call("POST", "/api/v2/pools", {"name": name, "slots": slots})
        except AirflowCallError as error:
            if error.status != 409:
                raise

    def put_connection(self, connection_id: str, conn_type: str, **fields: Any) -> None:
        """Creates the connection, or makes an old one the same; Airflow keeps it encrypted."""
        body = {"connection_id": connection_id, "conn_type": conn_type, **fields}
        try:
            self.call("POST", "/api/v2/connections", body)
        except AirflowCallError as error:
            if error.status != 409:
                raise
            self.call("PATCH", f"/api/v2/connections/{quote(connection_id)}", body)

    def put_kafka_connection(self, connection_id: str, client_settings: Mapping[str, str]) -> None:
        """As the apache-kafka provider keeps it: client properties as JSON in the extra."""
        self.put_connection(connection_id, "kafka", extra=json.dumps(dict(client_settings)))

    def run_link(self, run: DagRun) -> str:
        return f"{self.url}/dags/{quote(run.dag_id)}/runs/{quote(run.run_id)}"

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, login: bool = True) -> Any:
        """The JSON answer; raises AirflowCallError with Airflow's own reason."""
        for _ in range(_TRIES - 1):
            try:
                return self._call(method, path, body, login=login)
            except AirflowCallError as error:
                if error.status != 500 or _DATABASE not in str(error):
                    raise
            time.sleep(_POLL_S)
        return self._call(method, path, body, login=login)

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None, *, login: bool) -> Any:
        if not login:
            return self._send(method, path, body, None)
        if self._token is None:
            self._token = self._log_in()
        try:
            return self._send(method, path, body, self._token)
        except AirflowCallError as error:
            if error.status != 401:
                raise
        self._token = self._log_in()
        return self._send(method, path, body, self._token)

    def _log_in(self) -> str:
        password = json.loads(self._password_file.read_text())[self._user]
        answer = self._send("POST", "/auth/token", {"username": self._user, "password": password}, None)
        return str(answer["access_token"])

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None, token: str | None) -> Any:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310 - our URL
        try:
            with urllib.request.urlopen(request, timeout=_REQUEST_TIMEOUT_S) as response:  # noqa: S310
                return json.loads(response.read() or b"null")
        except urllib.error.HTTPError as error:
            with error:
                reason = error.read().decode(errors="replace")[:500]
            raise AirflowCallError(
                f"Airflow answered {method} {path} with {error.code}: {reason}", error.code
            ) from None
        except (OSError, ValueError) as error:
            raise AirflowCallError(f"Airflow at {self.url} did not answer {method} {path}: {error}.") from error

    def _task_path(self, run: DagRun, task_id: str) -> str:
        return f"/api/v2/dags/{quote(run.dag_id)}/dagRuns/{quote(run.run_id)}/taskInstances/{quote(task_id)}"


def await_condition(condition: Callable[[], T | None], timeout_s: float, what: str) -> T:
    """The condition's first answer that is not empty; raises LocalError when the time is over."""
    deadline = time.monotonic() + timeout_s
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise LocalError(f"Waited {timeout_s:.0f} s in vain for {what}.")
        time.sleep(_POLL_S)


def _run(answer: Mapping[str, Any]) -> DagRun:
    return DagRun(answer["dag_id"], answer["dag_run_id"], answer["state"])
