"""One run on Spark in which every task fails once, after it has done its work: `python fail_once.py TOPOLOGY FOLDER
FLOW SPARK`, or the same under spark-submit. Prints the run's result and, as `failed`, how many tasks did.

A process of its own, since one process holds one kind of Spark session.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark import cloudpickle

from twinlog.commands.flow_context import FlowContext
from twinlog.operations.copy_on_spark import copy_on_spark
from twinlog.operations.mirror import Mirror
from twinlog.operations.spark_session import spark_session

Task = Callable[[Iterator[Any]], Iterator[Any]]


class FailingSpark:
    """A session, as far as a copy uses it, whose tasks fail the first time; `folder` remembers which have."""

    def __init__(self, session: Any, folder: Path) -> None:
        self._session = session
        self._folder = folder

    def range(self, *numbers: int) -> FailingFrame:
        return FailingFrame(self._session.range(*numbers), self._folder)


class FailingFrame:
    def __init__(self, frame: Any, folder: Path) -> None:
        self._frame = frame
        self._folder = folder

    def mapInArrow(self, task: Task, schema: str) -> Any:  # noqa: N802 - as Spark has it
        return self._frame.mapInArrow(failing_once(task, self._folder), schema)


def failing_once(task: Task, folder: Path) -> Task:
    """The task, of whose first try nobody hears, as when the executor is lost before it has answered."""

    def failing(batches: Iterator[Any]) -> Iterator[Any]:
        given = list(batches)
        answers = list(task(iter(given)))
        first = folder / "-".join(str(number) for batch in given for number in batch.column(0).to_pylist())
        try:
            first.touch(exist_ok=False)
        except FileExistsError:
            yield from answers
            return
        raise RuntimeError("the executor was lost")

    return failing


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("topology", "folder"):
        parser.add_argument(name, type=Path)
    for name in ("flow", "spark"):
        parser.add_argument(name)
    asked = parser.parse_args()
    # Python workers can't import this module, so what it defines travels with the task.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    context = FlowContext(asked)
    mirror = Mirror(context.topology, context.flow, context.ends(), context.ledger())
    with spark_session(asked.spark) as session:
        failing: Any = FailingSpark(session, asked.folder)
        result = mirror.run(functools.partial(copy_on_spark, failing), tasks=2)
    failed = len(list(asked.folder.iterdir()))
    print(json.dumps({**result.to_json(), "failures": result.failures, "failed": failed}))  # noqa: T201


if __name__ == "__main__":
    main()
