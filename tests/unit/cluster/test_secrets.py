from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from twinlog.cluster.connection_variables import connection_from_environment
from twinlog.cluster.secrets import MASK, ResolvedSettings, mask, remember, resolve
from twinlog.errors import SecretError


def test_references_are_replaced_where_they_stand(tmp_path: Path) -> None:
    whole = tmp_path / "password"
    whole.write_text("from a file\n")
    whole.chmod(0o600)
    keyed = tmp_path / "secrets.properties"
    keyed.write_text("# a comment\nother = x\nkey.password = from a key\n")
    keyed.chmod(0o640)

    settings = resolve(
        {
            "bootstrap.servers": "${env:HOST}:9092,${env:OTHER}:9092",
            "sasl.password": f"${{file:{whole}}}",
            "ssl.key.password": f"${{file:{keyed}:key.password}}",
        },
        environ={"HOST": "one", "OTHER": "two"},
    )

    assert dict(settings) == {
        "bootstrap.servers": "one:9092,two:9092",
        "sasl.password": "from a file",
        "ssl.key.password": "from a key",
    }


def test_a_secret_is_neither_shown_nor_pickled() -> None:
    settings = resolve({"sasl.password": "${env:PW}", "client.id": "mine"}, environ={"PW": "open sesame"})

    assert "open sesame" not in f"{settings} {settings!r}"
    assert "mine" in repr(settings)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(settings)


def test_equal_settings_are_one_key() -> None:
    assert len({ResolvedSettings({"a": "1"}), ResolvedSettings({"a": "1"}), ResolvedSettings({"a": "2"})}) == 2


@pytest.mark.parametrize(
    "text",
    ['p/w+1 "x"', "error: 'p/w+1 \"x\"'", json.dumps({"password": 'p/w+1 "x"'}), "https://u:p%2Fw%2B1%20%22x%22@host"],
)
def test_a_resolved_secret_is_masked_in_every_form(text: str) -> None:
    resolve({"sasl.password": 'p/w+1 "x"'}, environ={})

    assert MASK in mask(text)
    assert "w+1" not in mask(text)
    assert "p%2Fw" not in mask(text)


def test_passwords_inside_a_login_line_are_masked_by_themselves() -> None:
    line = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="in jaas";'
    resolve({"sasl.jaas.config": line}, environ={})

    assert mask("tried in jaas today") == f"tried {MASK} today"


def test_the_longest_secret_is_masked_first() -> None:
    remember("tide")
    remember("tidewater")

    assert mask("tidewater") == MASK


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("${env:NOT_THERE}", "sasl.password: the environment variable NOT_THERE is not set"),
        ("${file:/no/such/file}", "sasl.password: the file /no/such/file cannot be read: No such file or directory"),
    ],
)
def test_what_is_not_there_is_named(value: str, message: str) -> None:
    with pytest.raises(SecretError) as error:
        resolve({"sasl.password": value}, environ={})
    assert str(error.value) == message


def test_a_secret_that_everyone_may_read_is_refused_with_the_remedy(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("hush")
    file.chmod(0o644)

    with pytest.raises(SecretError, match=f"may be read by everyone; run: chmod o-rwx {file}"):
        resolve({"sasl.password": f"${{file:{file}}}"}, environ={})
    assert resolve({"client.id": f"${{file:{file}}}"}, environ={})["client.id"] == "hush"


def test_a_missing_key_of_a_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "secrets.properties"
    file.write_text("one=hush\n")
    file.chmod(0o600)

    with pytest.raises(SecretError, match="has no property two") as error:
        resolve({"sasl.password": f"${{file:{file}:two}}"}, environ={})
    assert "hush" not in str(error.value)


def test_what_people_wrote_wins_over_the_connection_and_that_over_the_defaults() -> None:
    settings = resolve(
        {"client.id": "written"},
        "kafka_nyc",
        defaults={"client.id": "default", "retries": "1", "request.timeout.ms": "1"},
        environ={},
        connections=lambda name: {"client.id": name, "retries": "2", "sasl.password": "theirs"},
    )

    assert dict(settings) == {
        "client.id": "written",
        "retries": "2",
        "request.timeout.ms": "1",
        "sasl.password": "theirs",
    }


def test_without_airflow_a_connection_is_read_from_the_environment() -> None:
    extra = {"sasl.password": "x", "enable.auto.commit": False, "socket.timeout.ms": 5}
    as_object = json.dumps({"conn_type": "kafka", "extra": extra})
    as_text = json.dumps({"conn_type": "kafka", "extra": json.dumps(extra)})
    as_uri = "kafka://me:p%40ss@/?security.protocol=SASL_SSL&sasl.mechanism=PLAIN"

    expected = {"sasl.password": "x", "enable.auto.commit": "false", "socket.timeout.ms": "5"}
    assert connection_from_environment("kafka_nyc", {"AIRFLOW_CONN_KAFKA_NYC": as_object}) == expected
    assert connection_from_environment("kafka_nyc", {"AIRFLOW_CONN_KAFKA_NYC": as_text}) == expected
    assert connection_from_environment("kafka_nyc", {"AIRFLOW_CONN_KAFKA_NYC": as_uri}) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": "p@ss",
    }


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({}, "environment variable AIRFLOW_CONN_KAFKA_NYC, which is not set"),
        ({"AIRFLOW_CONN_KAFKA_NYC": '{"extra": hush}'}, "AIRFLOW_CONN_KAFKA_NYC is not valid JSON"),
        ({"AIRFLOW_CONN_KAFKA_NYC": '{"extra": ["hush"]}'}, "must be a JSON object"),
        ({"AIRFLOW_CONN_KAFKA_NYC": "hush"}, "neither JSON nor a URI"),
    ],
)
def test_a_connection_that_cannot_be_read_is_named_and_not_quoted(environ: dict[str, str], message: str) -> None:
    with pytest.raises(SecretError, match=message) as error:
        resolve({}, "kafka_nyc", environ=environ)
    assert "hush" not in str(error.value)
