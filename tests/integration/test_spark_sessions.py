"""Sessions on a Connect server whose workers have no twinlog: the package travels, and a session stays warm."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from local import ports
from twinlog.errors import ConfigurationError, SparkUnreachableError
from twinlog.operations import copy_on_spark
from twinlog.operations.spark_package import archive
from twinlog.operations.spark_session import spark_session

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")


@contextmanager
def session(url: str, cache: Path, warm: str | None = None) -> Iterator[SparkSession]:
    try:
        with spark_session(url, warm=warm, cache=cache) as spark:
            yield spark
    finally:
        # A child that inherits PySpark's mark can have no session but on Connect.
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)


def workers(spark: SparkSession) -> set[tuple[int, str]]:
    """The processes that carry out a task, and where each has twinlog from."""

    def where_twinlog_is(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os

        import twinlog.cluster.copy_order

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"pid": [os.getpid()], "file": [twinlog.__file__]})

    rows = spark.range(0, 1, 1, 1).mapInArrow(where_twinlog_is, "pid long, file string").collect()
    return {(row.pid, row.file) for row in rows}


def test_the_package_is_brought_along(spark_connect: str, tmp_path: Path) -> None:
    with session(spark_connect, tmp_path) as spark:
        ((_, file),) = workers(spark)
    (package,) = tmp_path.iterdir()
    assert package == archive(tmp_path)
    assert f"/{package.name}/twinlog/__init__.py" in file


def test_a_warm_session_goes_on_with_the_same_workers_until_the_server_ends_it(
    spark_connect: str, tmp_path: Path
) -> None:
    with session(spark_connect, tmp_path, "nyc->lon") as spark:
        first = workers(spark)
    with session(spark_connect, tmp_path, "nyc->lon") as spark:
        second = workers(spark)
        spark.client.release_session()  # as the server does with one that nobody uses
    with session(spark_connect, tmp_path, "nyc->lon") as spark:
        third = workers(spark)
    with session(spark_connect, tmp_path, "lon->nyc") as spark:
        other = workers(spark)
    assert first == second
    assert len(first | third | other) == 3


def test_modules_that_the_workers_lack_are_named_in_one_sentence(
    spark_connect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_on_spark, "REQUIRED", ("kafka", "no_such_codec", "lz4", "nor_this_one"))
    order: Any = SimpleNamespace(settings=SimpleNamespace(flow="nyc->lon"))

    with session(spark_connect, tmp_path) as spark, pytest.raises(ConfigurationError) as refused:
        copy_on_spark.copy_on_spark(spark, [order])

    sentence = str(refused.value)
    assert sentence.startswith("Spark can't copy: /")
    assert "python (Python 3." in sentence
    assert "has no module no_such_codec, nor_this_one;" in sentence
    assert "\n" not in sentence


def test_a_server_that_does_not_answer_is_named_without_the_token_that_was_for_it(tmp_path: Path) -> None:
    (port,) = ports.free_ports(1)
    with (
        pytest.raises(SparkUnreachableError) as refused,
        session(f"sc://127.0.0.1:{port}/;token=geheim;use_ssl=false", tmp_path, "nyc->lon"),
    ):
        pass
    assert refused.value.retriable
    assert f"server sc://127.0.0.1:{port} could not be reached" in str(refused.value)
    assert "geheim" not in str(refused.value)
