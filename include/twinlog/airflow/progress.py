"""How far a run has come, on its task while it runs: a line in the log now and then, and figures for the page."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from twinlog.commands.progress_display import LINE_EVERY_S, sentence

if TYPE_CHECKING:
    from airflow.sdk.types import RuntimeTaskInstanceProtocol

    from twinlog.operations.progress import Progress

log = logging.getLogger(__name__)

PROGRESS_KEY = "progress"
TOLD_EVERY_S = 3.0


class ProgressReport:
    """Called with each look at a run; the same values for the page every few seconds."""

    def __init__(self, ti: RuntimeTaskInstanceProtocol) -> None:
        self._ti = ti
        self._logged_s = 0.0
        self._told_s = 0.0

    def __call__(self, progress: Progress) -> None:
        over = progress.records >= progress.all_records
        if progress.seconds - self._logged_s >= LINE_EVERY_S:
            self._logged_s = progress.seconds
            log.info("%s", sentence(progress))
        if over or progress.seconds - self._told_s >= TOLD_EVERY_S:
            self._told_s = progress.seconds
            self._ti.xcom_push(key=PROGRESS_KEY, value=to_json(progress))


def to_json(progress: Progress) -> dict[str, float | None]:
    return {
        "records": progress.records,
        "all_records": progress.all_records,
        "bytes": progress.bytes,
        "all_bytes": progress.all_bytes,
        "seconds": round(progress.seconds, 1),
        "left_s": None if progress.left_s is None else round(progress.left_s, 1),
    }
