"""Work carried out by Spark: one partition an order, one action, nothing but the DataFrame API.

The same on Spark Connect, under spark-submit and in a local session. An error of ours in a task comes back as itself:
whether trying again can help is known here, and not to Spark.

What a task is made of must arrive before anything of Twinlog is imported there, so that a module that is missing on
an executor is named in one sentence: hence the orders travel pickled, and the work by its name.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from twinlog.errors import ConfigurationError, TwinlogError, of_kind
from twinlog.operations.spark_package import REQUIRED
from twinlog.operations.spark_session import spark_failures

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

RESULT = "result binary, failure string, message string"

_MISSING_MODULES = "missing modules"


def carried_out(spark: SparkSession, work: str, orders: Sequence[object], what: str) -> list[Any]:
    """The results of a function, named as `package.module:function`, for each order, by a task each."""
    # `range` gives row i to partition i, so each task knows its order by number: a hash would put two in one task.
    numbered = spark.range(0, len(orders), 1, len(orders))
    pickled, required, missing_modules = [pickle.dumps(order) for order in orders], REQUIRED, _MISSING_MODULES

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import importlib  # noqa: PLC0415 - a task brings all it needs, see above
        import importlib.util  # noqa: PLC0415 - as above
        import platform  # noqa: PLC0415 - as above
        import sys  # noqa: PLC0415 - as above

        import pyarrow

        def answer(result: bytes | None, failure: str | None = None, message: str | None = None) -> pa.RecordBatch:
            columns = {
                "result": pyarrow.array([result], pyarrow.binary()),
                "failure": pyarrow.array([failure], pyarrow.string()),
                "message": pyarrow.array([message], pyarrow.string()),
            }
            return pyarrow.RecordBatch.from_pydict(columns)

        missing = [name for name in required if importlib.util.find_spec(name) is None]
        if missing:
            where = f"{sys.executable} (Python {platform.python_version()}) on {platform.node()}"
            yield answer(None, missing_modules, f"{where} has no module {', '.join(missing)}")
            return
        from twinlog.errors import TwinlogError  # noqa: PLC0415 - as above

        module, _, name = work.partition(":")
        carry_out = getattr(importlib.import_module(module), name)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                try:
                    result = carry_out(pickle.loads(pickled[number]))  # noqa: S301 - written by the driver above
                except TwinlogError as error:
                    yield answer(None, type(error).__name__, str(error))
                else:
                    yield answer(pickle.dumps(result))

    with spark_failures(what):
        rows: list[Any] = numbered.mapInArrow(task, RESULT).collect()
    for row in rows:
        if row["failure"] is not None:
            raise _error(what, row["failure"], row["message"])
    return [pickle.loads(bytes(row["result"])) for row in rows]  # noqa: S301 - as above


def _error(what: str, kind: str, message: str) -> TwinlogError:
    if kind == _MISSING_MODULES:
        return ConfigurationError(
            f"{what} on Spark failed: {message}; Twinlog brings itself along, what it needs beside must be installed "
            "in the Python of Spark's executors (README.md lists it)"
        )
    return of_kind(kind, message)
