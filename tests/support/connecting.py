"""A session on a Spark Connect server in the tests' own process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

_MARK = "SPARK_CONNECT_MODE_ENABLED"


@contextmanager
def connected(url: str) -> Iterator[SparkSession]:
    """The session, and nothing left of it: a child that inherits PySpark's mark can have no session but on Connect."""
    session = SparkSession.builder.remote(url).create()
    try:
        yield session
    finally:
        session.stop()
        os.environ.pop(_MARK, None)
