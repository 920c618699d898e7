"""Airflow connections as environment variables (`AIRFLOW_CONN_<ID>`), read without Airflow.

A disaster may take Airflow too, and the command line must still reach the clusters. The two forms are
Airflow's: JSON with the Kafka properties under `extra`, and a URI with them in its query (or as JSON in
`__extra__`). Errors name the variable and never quote it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from twinlog.errors import SecretError


def connection_from_environment(connection_id: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The Kafka client properties of connection `connection_id`."""
    variable = f"AIRFLOW_CONN_{connection_id.upper()}"
    text = environ.get(variable)
    if text is None:
        raise SecretError(
            f"the connection {connection_id} was not found: without Airflow it is read from the environment "
            f"variable {variable}, which is not set"
        )
    if text.lstrip().startswith("{"):
        return properties_of_json(text, variable)
    return properties_of_uri(text, variable)


def properties_of_json(text: str, variable: str) -> dict[str, str]:
    """Airflow's JSON form: `{"conn_type": "kafka", "extra": {...}}`."""
    connection = _json_object(text, variable)
    extra = connection.get("extra") or {}
    if isinstance(extra, str):
        extra = _json_object(extra, f"the extra of {variable}")
    if not isinstance(extra, dict):
        raise SecretError(f"the extra of {variable} must be a JSON object of Kafka client properties")
    properties = {str(key): _as_text(value) for key, value in extra.items()}
    return _with_login(properties, connection.get("login"), connection.get("password"))


def properties_of_uri(text: str, variable: str) -> dict[str, str]:
    """Airflow's URI form: `kafka://user:password@host:port/?sasl.mechanism=PLAIN`."""
    parts = urlsplit(text)
    if not parts.scheme:
        raise SecretError(f"{variable} is neither JSON nor a URI such as kafka://?security.protocol=SSL")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    extra = query.pop("__extra__", None)
    properties = {str(key): _as_text(value) for key, value in _json_object(extra, variable).items()} if extra else {}
    properties.update(query)
    user = unquote(parts.username) if parts.username else None
    password = unquote(parts.password) if parts.password else None
    return _with_login(properties, user, password)


def _with_login(properties: dict[str, str], login: object, password: object) -> dict[str, str]:
    if login:
        properties.setdefault("sasl.username", str(login))
    if password:
        properties.setdefault("sasl.password", str(password))
    return properties


def _json_object(text: str, what: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise SecretError(f"{what} is not valid JSON (line {error.lineno}, column {error.colno})") from None
    if not isinstance(value, dict):
        raise SecretError(f"{what} must be a JSON object")
    return value


def _as_text(value: object) -> str:
    """JSON has booleans and numbers where Kafka's properties have text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
