"""Which Spark copies a flow. Where the topology names an Airflow connection, its type decides:

spark_connect    a warm session on that Connect server
spark            a job that is submitted to that master: standalone, YARN or Kubernetes

Either's extra may hold `page`, the address of Spark's own page as people reach it; otherwise the address is asked of
Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlog.errors import ConfigurationError

if TYPE_CHECKING:
    from twinlog.model.topology import Flow, Topology

CONNECT = "spark_connect"
SUBMIT = "spark"


@dataclass(frozen=True)
class SparkPlace:
    """Where to copy: in a session at `address`, or, where there is none, by submitting to `connection`."""

    address: str = ""
    connection: str = ""
    page: str | None = None
    """Where people look at that Spark."""


def spark_place(topology: Topology, flow: Flow) -> SparkPlace:
    """The place of a flow's Spark, by what the topology names for it."""
    from twinlog.operations.spark_session import address, is_address  # noqa: PLC0415 - no matter of parsing a DAG

    named = topology.spark_for(flow)
    if named is None or is_address(named):
        return SparkPlace(address(named))
    return _of_connection(flow, named)


def session_address(topology: Topology, flow: Flow) -> str:
    """Where a session of this process finds the flow's Spark: where jobs are submitted to a master, that master."""
    place = spark_place(topology, flow)
    if not place.connection:
        return place.address
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook  # noqa: PLC0415 - dear

    return str(SparkSubmitHook(conn_id=place.connection)._connection["master"])


def _of_connection(flow: Flow, connection_id: str) -> SparkPlace:
    from airflow.sdk import BaseHook  # noqa: PLC0415 - importing Airflow's hooks is dear and only tasks come here
    from airflow.sdk.exceptions import AirflowNotFoundException  # noqa: PLC0415 - as above

    try:
        connection = BaseHook.get_connection(connection_id)
    except AirflowNotFoundException:
        raise ConfigurationError(
            f'{flow.name}: "{connection_id}" is neither the address of a Spark nor an Airflow connection: create it '
            f"with type {CONNECT!r} or {SUBMIT!r}"
        ) from None
    page = connection.extra_dejson.get("page")
    if connection.conn_type == CONNECT:
        from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook  # noqa: PLC0415 - as above

        return SparkPlace(address=SparkConnectHook(connection_id).get_connection_url(), page=page)
    if connection.conn_type == SUBMIT:
        return SparkPlace(connection=connection_id, page=page)
    raise ConfigurationError(
        f"{flow.name}: the Airflow connection {connection_id!r} has type {connection.conn_type!r}, expected "
        f"{CONNECT!r} or {SUBMIT!r}"
    )
