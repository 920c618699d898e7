"""An Airflow connection as Kafka client properties, the form in which `twinlog.cluster` asks for secrets.

The apache-kafka provider keeps a cluster's client properties as one JSON object in the connection's
`extra`; that is the only place read here, so a connection made for the provider's own hooks serves without
change. Airflow masks what it knows to be secret in task logs; nothing here is ever part of a message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from twinlog.errors import SecretError

CONNECTION_TYPE = "kafka"


def kafka_properties(connection_id: str) -> Mapping[str, str]:
    """The client properties in the connection's extra; raises SecretError where there are none to be had."""
    from airflow.sdk import BaseHook  # noqa: PLC0415 - importing Airflow is dear and only tasks come here
    from airflow.sdk.exceptions import AirflowNotFoundException  # noqa: PLC0415 - as above

    try:
        connection = BaseHook.get_connection(connection_id)
    except AirflowNotFoundException:
        raise SecretError(
            f"The Airflow connection {connection_id!r} does not exist: "
            f"create it with type {CONNECTION_TYPE!r} and the client properties as JSON in its extra."
        ) from None
    if connection.conn_type != CONNECTION_TYPE:
        raise SecretError(
            f"The Airflow connection {connection_id!r} has type {connection.conn_type!r}, "
            f"expected {CONNECTION_TYPE!r}: create it as the apache-kafka provider's connection."
        )
    return properties_of_extra(connection_id, connection.extra)


def properties_of_extra(connection_id: str, extra: str | None) -> Mapping[str, str]:
    """The extra's JSON object with every value as Kafka's text form of it."""
    try:
        parsed = json.loads(extra or "{}")
    except json.JSONDecodeError as error:
        # The text itself may be a secret, so the message says where and not what.
        raise SecretError(
            f"The extra of the Airflow connection {connection_id!r} is not JSON "
            f"(line {error.lineno}, column {error.colno}): write the client properties as one JSON object."
        ) from None
    if not isinstance(parsed, dict):
        raise SecretError(
            f"The extra of the Airflow connection {connection_id!r} is not a JSON object: "
            "write the client properties as one."
        )
    return {name: _kafka_text(value) for name, value in parsed.items()}


def _kafka_text(value: object) -> str:
    """Kafka spells true and false in lower case, as JSON does; text stays as it is."""
    return value if isinstance(value, str) else json.dumps(value)
