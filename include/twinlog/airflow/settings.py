"""Every read of Airflow's configuration, and the one answer to "which topology file?".

The file is named by the environment variable TWINLOG_TOPOLOGY, as for the command line, or else by
`topology` in the section `[twinlog]` of airflow.cfg (which Airflow also reads from
AIRFLOW__TWINLOG__TOPOLOGY). It is not an Airflow variable: DAG files are parsed every few seconds and each
parse would ask the metadata database for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from twinlog.errors import ConfigurationError

ENVIRONMENT_VARIABLE = "TWINLOG_TOPOLOGY"


def topology_path(environ: Mapping[str, str] = os.environ) -> Path:
    """The topology file's path; raises ConfigurationError where none is set."""
    named = environ.get(ENVIRONMENT_VARIABLE) or _from_airflow_configuration()
    if not named:
        raise ConfigurationError(
            f"No topology file is set: name it in the environment variable {ENVIRONMENT_VARIABLE} "
            "or as `topology` in the section [twinlog] of airflow.cfg."
        )
    return Path(named)


def _from_airflow_configuration() -> str | None:
    from airflow.sdk.configuration import conf  # noqa: PLC0415 - dear, and rarely needed

    value: str | None = conf.get("twinlog", "topology", fallback=None)
    return value
