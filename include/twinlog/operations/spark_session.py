"""The Spark that a run copies on, as its address says: a Connect server, a master, or a session in this process.

The workers are given the package (see `spark_package`), wherever they are. A session on a Connect server can be kept
warm from run to run: its workers have imported everything by then, which saves two seconds a run. The server ends one
that nobody has used for an hour.
"""

from __future__ import annotations

import os
import re
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from twinlog.cluster.secrets import mask, remember
from twinlog.errors import ConfigurationError, SparkFailedError, SparkUnreachableError
from twinlog.operations.spark_package import archive

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.connect.session import SparkSession as ConnectSession

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
_NAMESPACE = uuid.UUID("5c2f8a52-6d2b-4f0e-9a3f-6f1f6f0b5d11")
_REACHED_WITHIN_S = 10.0
_TRIES_AGAIN = 8
"""Of a request that does not get through: after 0.1 s, then after twice as long each time, 5 s at most; 16 s in all.
Spark's own policy would take ten minutes to fail."""
_ENDED = ("SESSION_CLOSED", "SESSION_CHANGED")


def address(wanted: str | None) -> str:
    """What the topology names, or the environment, or a session of our own."""
    return wanted or os.environ.get(VARIABLE) or LOCAL


def is_address(text: str) -> bool:
    """Whether it says where a Spark is; otherwise it may be a name under which somebody keeps that."""
    return text.startswith(("sc://", *_MASTERS))


@contextmanager
def spark_session(where: str, *, warm: str | None = None, cache: Path | None = None) -> Iterator[SparkSession]:
    """A session there. One of our own ends with the block; a Connect server goes on, and so does its session where it
    is asked for by the name `warm`. The package is kept in the folder `cache`."""
    from pyspark.sql import SparkSession

    if where.startswith("sc://"):
        session = _remote(where, warm, archive(cache))
        try:
            yield cast("SparkSession", session)
        finally:
            session.stop()
        return
    if not is_address(where):
        raise ConfigurationError(
            f'"{where}" is no Spark: expected sc://host:port, a master such as spark://host:port or local[2]; the name '
            "of an Airflow connection can be used from Airflow only"
        )
    builder = SparkSession.builder.appName("twinlog").master(where)
    for name, value in {**_SETTINGS, "spark.submit.pyFiles": str(archive(cache))}.items():
        builder = builder.config(name, value)
    own = builder.getOrCreate()
    try:
        yield own
    finally:
        own.stop()


def _remote(where: str, warm: str | None, package: Path) -> ConnectSession:
    from pyspark.errors import PySparkException

    _remember_token(where)
    try:
        if warm is not None:
            # A new one every day, lest one that the server has ended be asked for for ever.
            name = f"{package.name} {warm} {datetime.now(UTC):%Y-%m-%d}"
            try:
                return _connected(where, package, str(uuid.uuid5(_NAMESPACE, name)))
            except PySparkException as error:
                if not any(word in str(error) for word in _ENDED):
                    raise
        return _connected(where, package, None)
    except (PySparkException, OSError) as error:
        raise SparkUnreachableError(
            f"the Spark Connect server {shown(where)} could not be reached: {_first_line(error)}"
        ) from error


def _connected(where: str, package: Path, session_id: str | None) -> ConnectSession:
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    channel = DefaultChannelBuilder(where)
    host, _, port = channel.endpoint.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), _REACHED_WITHIN_S).close()
    if session_id is not None:
        channel.set("session_id", session_id)
    session: ConnectSession = SparkSession.builder.channelBuilder(channel).create()
    patience = DefaultPolicy(max_retries=_TRIES_AGAIN, initial_backoff=100, backoff_multiplier=2.0, max_backoff=5_000)
    session.client.set_retry_policies([patience])
    session.release_session_on_close = session_id is None
    try:
        session.range(1).count()
        session.addArtifact(str(package), pyfile=True)
    except BaseException:
        session.stop()
        raise
    return session


def bring_package(spark: SparkSession, cache: Path | None = None) -> None:
    """Give the workers of a session that somebody else has made the package."""
    spark.addArtifact(str(archive(cache)), pyfile=True)


def ended_by(spark: SparkSession, tag: str) -> Callable[[], object]:
    """What ends all that this thread has Spark do from now on, and nothing else: a warm session is shared by the tasks
    of its flow."""
    spark.addTag(tag)
    return lambda: spark.interruptTag(tag)


@contextmanager
def spark_failures(what: str) -> Iterator[None]:
    """What goes wrong with Spark itself while it carries out `what`, in our words: it may go better the next time."""
    from pyspark.errors import PySparkException, PythonException

    try:
        yield
    except PythonException:
        raise
    except PySparkException as error:
        raise SparkFailedError(
            f"{what}: Spark did not carry it out: {_first_line(error)}; what is committed stays, and the next run goes "
            "on from there"
        ) from error


def page_of(spark: SparkSession, named: str | None = None) -> str | None:
    """Spark's own page about the session, on the server that is `named` or else where Spark says it has one."""
    base = named or _page(spark)
    session_id = getattr(spark, "session_id", None)
    if base is None or session_id is None:
        return base
    return f"{base.rstrip('/')}/connect/session/?id={session_id}"


def _page(spark: SparkSession) -> str | None:
    host = spark.conf.get("spark.driver.host", None)
    if host is None or spark.conf.get("spark.ui.enabled", "true") != "true":
        return None
    return f"http://{host}:{spark.conf.get('spark.ui.port', '4040')}"


def shown(where: str) -> str:
    """An address without what may be a secret in it."""
    return where.split("/;", maxsplit=1)[0]


def _remember_token(where: str) -> None:
    for parameter in where.partition(";")[2].split(";"):
        name, _, value = parameter.partition("=")
        if name == "token":
            remember(value)


def _first_line(error: Exception) -> str:
    return mask(next(iter(str(error).splitlines()), type(error).__name__))


def most_tasks(spark: SparkSession, lanes: int) -> int:
    """How many tasks to cut a run into: one a lane at the most, and on a single machine as many as run at once there.

    More would wait for a core, and each starts a Python process of its own.
    """
    threads = _LOCAL_THREADS.match(spark.conf.get("spark.master") or "")
    if threads is None:
        return lanes
    return min(lanes, int(threads[1]) if threads[1] != "*" else os.cpu_count() or 1)
