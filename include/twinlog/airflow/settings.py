"""Every read of Airflow's configuration: which topology file, whose site, which folder to keep things in, which jobs,
whom to tell.

The file is named by the environment variable TWINLOG_TOPOLOGY, as for the command line, or else by
`topology` in the section `[twinlog]` of airflow.cfg (which Airflow also reads from
AIRFLOW__TWINLOG__TOPOLOGY). It is not an Airflow variable: DAG files are parsed every few seconds and each
parse would ask the metadata database for it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twinlog.errors import ConfigurationError
from twinlog.intake.topology_file import SITE_VARIABLE

ENVIRONMENT_VARIABLE = "TWINLOG_TOPOLOGY"
JOBS_VARIABLE = "TWINLOG_SPARK_JOBS"

_SECTION = "twinlog"
_NOTIFIERS = 'expected a list of objects, each with "class" and that class\'s arguments'


def topology_path(environ: Mapping[str, str] = os.environ) -> Path:
    """The topology file's path; raises ConfigurationError where none is set."""
    named = environ.get(ENVIRONMENT_VARIABLE) or _from_airflow_configuration(_SECTION, "topology")
    if not named:
        raise ConfigurationError(
            f"No topology file is set: name it in the environment variable {ENVIRONMENT_VARIABLE} "
            "or as `topology` in the section [twinlog] of airflow.cfg."
        )
    return Path(named)


def site_name(environ: Mapping[str, str] = os.environ) -> str | None:
    """The name of this Airflow's site, where the environment or a base URL gives one; workers come and go."""
    return environ.get(SITE_VARIABLE) or _from_airflow_configuration("api", "base_url")


def own_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where what is kept from one process of Airflow to the next lies: in its home, and for its owner only."""
    home = Path(os.path.expandvars(environ.get("AIRFLOW_HOME") or "~/airflow")).expanduser()
    return home / "twinlog"


def spark_jobs(dag_file: str, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of the jobs for spark-submit: as set, or beside the DAG folder, as in the repository."""
    named = environ.get(JOBS_VARIABLE) or _from_airflow_configuration(_SECTION, "spark_jobs")
    return Path(named) if named else Path(dag_file).resolve().parent.parent / "spark_jobs"


def notifiers() -> list[dict[str, Any]]:
    """What tells people: a class and its arguments each, from `notifiers` in the section [twinlog]."""
    text = _from_airflow_configuration(_SECTION, "notifiers")
    if not text or not text.strip():
        return []
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        # Its arguments may hold what is not to be shown, so the message says where and not what.
        raise ConfigurationError(
            f"`notifiers` in the section [{_SECTION}] of airflow.cfg is not JSON (line {error.lineno}, column "
            f"{error.colno}): {_NOTIFIERS}"
        ) from None
    if not isinstance(found, list) or not all(
        isinstance(one, dict) and isinstance(one.get("class"), str) for one in found
    ):
        raise ConfigurationError(f"`notifiers` in the section [{_SECTION}] of airflow.cfg: {_NOTIFIERS}")
    return found


def _from_airflow_configuration(section: str, name: str) -> str | None:
    from airflow.sdk.configuration import conf  # noqa: PLC0415 - dear, and rarely needed

    value: str | None = conf.get(section, name, fallback=None)
    return value
