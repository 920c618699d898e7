"""Makes no DAG: reads the topology and who is to be told, so that a mistake there is shown as this file's import error.

It is the only file that raises. The flows go on as the topology's last good version has them (`airflow.topology`).
"""

from __future__ import annotations

from twinlog.airflow.settings import notifiers, topology_path
from twinlog.intake.topology_file import load

load(topology_path())
notifiers()
