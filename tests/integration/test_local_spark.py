"""Spark from the pip package, as the demo and the tests start it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from local import spark
from support.connecting import connected
from support.process_table import pids_with
from support.waiting import await_condition

# PySpark 4.2 warns about pandas 3, which plays no part here.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")


def files_seen_by_workers(url: str) -> set[str]:
    # Inside, so that it travels whole: the workers cannot import this module.
    def where_twinlog_is(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import twinlog

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"file": [twinlog.__file__]})

    with connected(url) as session:
        rows = session.range(4, numPartitions=2).mapInArrow(where_twinlog_is, "file string").collect()
    return {row.file for row in rows}


def test_a_connect_server_runs_python_that_imports_twinlog(spark_connect: str) -> None:
    import twinlog

    assert files_seen_by_workers(spark_connect) == {twinlog.__file__}


@pytest.mark.long
def test_a_standalone_master_with_two_workers_serves_a_connect_server_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import twinlog

    mark = f"twinlog-test-{uuid.uuid4()}"
    monkeypatch.setenv("TWINLOG_TEST_MARK", mark)
    with (
        spark.standalone(tmp_path / "cluster", workers=2, memory_mb=512) as master,
        spark.connect_server(
            tmp_path / "connect", master=master, memory_mb=512, conf={"spark.executor.memory": "512m"}
        ) as url,
    ):
        assert files_seen_by_workers(url) == {twinlog.__file__}
    await_condition(lambda: not pids_with(mark) - {os.getpid()}, "no process of Spark is left")
