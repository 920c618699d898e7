"""Sessions on a Connect server whose workers have no twinlog: the package travels, and a session stays warm."""

from __future__ import annotations

import functools
import os
import signal
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from local import ports
from local.kafka import KafkaClusters
from local.spark import connect_server
from support.bare_python import bare_python
from support.ledger_check import check_twins, flow_positions
from support.mirroring import twins
from support.process_table import pids_with
from support.source_logs import fill
from support.waiting import await_condition
from twinlog.errors import ConfigurationError, SparkFailedError, SparkUnreachableError
from twinlog.operations import copy_on_spark, spark_tasks
from twinlog.operations import spark_session as spark_session_module
from twinlog.operations.spark_package import archive
from twinlog.operations.spark_session import ended_by, spark_failures, spark_session

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
    monkeypatch.setattr(spark_tasks, "REQUIRED", ("kafka", "no_such_codec", "lz4", "nor_this_one"))
    order: Any = SimpleNamespace(settings=SimpleNamespace(flow="nyc->lon"))

    with session(spark_connect, tmp_path) as spark, pytest.raises(ConfigurationError) as refused:
        copy_on_spark.copy_on_spark(spark, [order])

    sentence = str(refused.value)
    assert sentence.startswith("copying nyc->lon on Spark failed: /")
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


@pytest.mark.filterwarnings("ignore:.*RETRIES_EXCEEDED")
def test_a_server_that_is_lost_amid_its_copying_costs_what_was_not_committed(
    kafka_pair: KafkaClusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_session_module, "_TRIES_AGAIN", 3)
    nyc, lon = (kafka_pair[name].bootstrap_servers for name in ("nyc", "lon"))
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    # A megabyte in small batches, which takes ten seconds at the throttle.
    slow = twins(nyc, lon, tmp_path, (topic,), throttle=0.1, transaction_seconds=1)
    slow.create(topic, partitions=2)
    for partition in range(2):
        fill(nyc, topic, [f"{number} ".ljust(1_000, ".") for number in range(500)], partition, batch_num_messages=10)

    def kill_the_server() -> None:
        await_condition(lambda: bool(flow_positions(slow)), "the first commit", 60.0)
        for pid in pids_with(folder.name):
            os.kill(pid, signal.SIGKILL)

    folder = tmp_path / f"spark-{uuid.uuid4().hex[:8]}"
    with (
        connect_server(folder, python=bare_python(tmp_path / "python")) as url,
        session(url, tmp_path, slow.flow.name) as spark,
        ThreadPoolExecutor(1) as pool,
    ):
        killing = pool.submit(kill_the_server)
        with pytest.raises(SparkFailedError, match="what is committed stays") as lost:
            slow.steps().copy(functools.partial(copy_on_spark.copy_on_spark, spark), tasks=2, run="lost")
        killing.result()
    assert lost.value.retriable
    before = sum(map(len, slow.read_target(topic).values()))
    assert 0 < before < 1_000

    again = slow.with_settings(throttle=None).mirror(run="lost")

    assert again.failures == []
    assert check_twins(slow, topic) == 1_000


def test_who_ends_a_task_ends_its_work_on_spark_and_not_that_of_others_in_the_session(
    spark_connect: str, tmp_path: Path
) -> None:
    def rest(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import time

        time.sleep(4)
        yield from batches

    with session(spark_connect, tmp_path, "nyc->lon") as spark, ThreadPoolExecutor(2) as pool:

        def work(tag: str) -> int:
            end[tag] = ended_by(spark, tag)
            with spark_failures(tag):
                return len(spark.range(0, 1, 1, 1).mapInArrow(rest, "id long").collect())

        end: dict[str, Any] = {}
        ended, other = pool.submit(work, "a run"), pool.submit(work, "another")
        # Work that has not begun yet can't be ended.
        await_condition(lambda: bool(end["a run"]() if "a run" in end else False), "the work to have been ended")
        with pytest.raises(SparkFailedError, match=r"^a run: "):
            ended.result()
        assert other.result() == 1
