"""Spark from the pip package, as the demo and the tests start it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from local import spark
from support.bare_python import bare_python
from support.connecting import connected
from support.process_table import pids_with
from support.waiting import await_condition

# PySpark 4.2 warns about pandas 3, which plays no part here.
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")


def seen_by_workers(url: str) -> set[tuple[str, bool]]:
    # Inside, so that it travels whole: the workers cannot import this module.
    def what_there_is(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import importlib.util
        import sys

        for _ in batches:
            has_twinlog = importlib.util.find_spec("twinlog") is not None
            yield pa.RecordBatch.from_pydict({"python": [sys.executable], "has_twinlog": [has_twinlog]})

    with connected(url) as session:
        rows = session.range(4, numPartitions=2).mapInArrow(what_there_is, "python string, has_twinlog boolean")
        return {(row.python, row.has_twinlog) for row in rows.collect()}


def test_a_connect_server_runs_the_python_it_is_given_which_knows_nothing_of_twinlog(spark_connect: str) -> None:
    ((python, has_twinlog),) = seen_by_workers(spark_connect)
    assert Path(python).parent.parent.name == "python"
    assert not has_twinlog


@pytest.mark.long
def test_a_standalone_master_with_two_workers_serves_a_connect_server_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"twinlog-test-{uuid.uuid4()}"
    monkeypatch.setenv("TWINLOG_TEST_MARK", mark)
    bare = bare_python(tmp_path / "python")
    with (
        spark.standalone(tmp_path / "cluster", workers=2, memory_mb=512, python=bare) as master,
        spark.connect_server(
            tmp_path / "connect", master=master, memory_mb=512, conf={"spark.executor.memory": "512m"}, python=bare
        ) as url,
    ):
        assert seen_by_workers(url) == {(str(bare), False)}
    await_condition(lambda: not pids_with(mark) - {os.getpid()}, "no process of Spark is left")
