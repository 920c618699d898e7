"""The Spark that a run copies on, as its address says: a Connect server, a master, or a session in this process."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from twinlog.errors import ConfigurationError, SparkUnreachableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
VARIABLE = "TWINLOG_SPARK"

_LOCAL_THREADS = re.compile(r"local\[(\d+|\*)")
_MASTERS = ("local", "spark://", "yarn", "k8s://")
_SETTINGS = {
    "spark.speculation": "false",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.log.level": "ERROR",
}


def address(wanted: str | None) -> str:
    """What the topology names, or the environment, or a session of our own."""
    return wanted or os.environ.get(VARIABLE) or LOCAL


@contextmanager
def spark_session(where: str) -> Iterator[SparkSession]:
    """A session there. One of our own ends with the block; a Connect server goes on."""
    from pyspark.sql import SparkSession

    if where.startswith("sc://"):
        session = _remote(where)
        try:
            yield session
        finally:
            session.stop()
        return
    if not where.startswith(_MASTERS):
        raise ConfigurationError(
            f'"{where}" is no Spark: expected sc://host:port, a master such as spark://host:port or local[2]; the name '
            "of an Airflow connection can be used from Airflow only"
        )
    builder = SparkSession.builder.appName("twinlog").master(where)
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def _remote(where: str) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        session = SparkSession.builder.remote(where).create()
        session.range(1).count()
    except PySparkException as error:
        raise SparkUnreachableError(f"the Spark Connect server {where} could not be reached: {error}") from error
    return session


def most_tasks(spark: SparkSession, lanes: int) -> int:
    """How many tasks to cut a run into: one a lane at the most, and on a single machine as many as run at once there.

    More would wait for a core, and each starts a Python process of its own.
    """
    threads = _LOCAL_THREADS.match(spark.conf.get("spark.master") or "")
    if threads is None:
        return lanes
    return min(lanes, int(threads[1]) if threads[1] != "*" else os.cpu_count() or 1)
