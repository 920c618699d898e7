"""Run once before Airflow's services start: the database's tables, and the administrator's login.

The password comes from the environment of this one container and ends in a file that only Airflow's user
reads; the services never see the variable.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path


def main() -> None:
    password = os.environ.pop("AIRFLOW_ADMIN_PASSWORD")
    file = Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"])
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as output:
        json.dump({"admin": password}, output)
    subprocess.run(["airflow", "db", "migrate"], check=True)


if __name__ == "__main__":
    main()
