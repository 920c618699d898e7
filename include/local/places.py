"""Where the embedded default keeps its files: everything under one work folder that git ignores.

The work folder is `.work` at the root of the repository, or whatever `TWINLOG_WORK` names.
"""

from __future__ import annotations

import os
from pathlib import Path

INCLUDE = Path(__file__).resolve().parent.parent
REPOSITORY = INCLUDE.parent


def work_folder() -> Path:
    return Path(os.environ.get("TWINLOG_WORK") or REPOSITORY / ".work").absolute()


def kafka_jars_folder() -> Path:
    return work_folder() / "kafka-jars"
