"""The launcher on real Kafka: every listener is reached by both client libraries, and brokers fail as asked."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.admin import KafkaAdminClient

from local.errors import StartError
from local.kafka import KafkaCluster, KafkaClusters, KafkaSpec, start
from local.places import INCLUDE
from support.process_table import pids_with
from support.waiting import await_condition

USERS = {"alice": 'a "word"', "bob": "bob's word"}


def librdkafka_settings(settings: Mapping[str, str], user: str | None) -> dict[str, str]:
    names = {"ssl.truststore.location": "ssl.ca.location"}
    same = ("bootstrap.servers", "security.protocol", "sasl.mechanism")
    translated = {names.get(key, key): value for key, value in settings.items() if key in (*same, *names)}
    if user is not None:
        translated |= {"sasl.username": user, "sasl.password": USERS[user]}
    return translated


def brokers_by_confluent(settings: Mapping[str, str], user: str | None = None) -> set[int]:
    return set(AdminClient(librdkafka_settings(settings, user)).list_topics(timeout=20).brokers)


def brokers_by_kafka_python(settings: Mapping[str, str], user: str | None = None) -> set[int]:
    client = KafkaAdminClient(
        bootstrap_servers=settings["bootstrap.servers"].split(","),
        security_protocol=settings["security.protocol"],
        ssl_cafile=settings.get("ssl.truststore.location"),
        sasl_mechanism=settings.get("sasl.mechanism"),
        sasl_plain_username=user,
        sasl_plain_password=USERS[user] if user else None,
    )
    try:
        return {broker["broker_id"] for broker in client.describe_cluster()["brokers"]}
    finally:
        client.close()


@pytest.mark.parametrize("name", ["nyc", "lon"])
def test_a_cluster_of_one_broker_is_reached_by_both_clients(kafka_pair: KafkaClusters, name: str) -> None:
    settings = kafka_pair[name].client_settings()
    assert brokers_by_confluent(settings) == {0}
    assert brokers_by_kafka_python(settings) == {0}


@pytest.mark.parametrize(
    ("listener", "user"), [("PLAINTEXT", None), ("TLS", None), ("SASL_SSL", "alice"), ("SASL_SSL", "bob")]
)
def test_three_brokers_are_reached_by_both_clients_on_every_listener(
    trio: KafkaCluster, listener: str, user: str | None
) -> None:
    settings = trio.client_settings(listener, user)
    assert brokers_by_confluent(settings, user) == {0, 1, 2}
    assert brokers_by_kafka_python(settings, user) == {0, 1, 2}


def test_a_wrong_password_does_not_get_in(trio: KafkaCluster) -> None:
    settings = librdkafka_settings(trio.client_settings("SASL_SSL", "alice"), "alice")
    refusals: list[str] = []
    client = AdminClient(
        {**settings, "sasl.password": "guess", "error_cb": lambda error: refusals.append(error.name())}
    )
    with pytest.raises(KafkaException):
        client.list_topics(timeout=3)
    client.poll(0)
    assert "_AUTHENTICATION" in refusals


def test_brokers_die_hang_and_come_back_as_the_same(three: KafkaCluster) -> None:
    settings = three.client_settings()

    def known() -> set[int]:
        return brokers_by_confluent(settings)

    three.kill_broker(1)
    await_condition(lambda: known() == {0, 2}, "the killed broker is gone")
    three.restart_broker(1)
    assert known() == {0, 1, 2}
    three.pause_broker(2)
    await_condition(lambda: known() == {0, 1}, "the paused broker is gone")
    three.resume_broker(2)
    await_condition(lambda: known() == {0, 1, 2}, "the resumed broker is back")


def test_the_authorizer_denies_all_but_the_admin(tmp_path: Path) -> None:
    users = {"admin": "a", "carol": "c"}
    spec = KafkaSpec("lon", scram=users, authorizer=True, tls=True, client_certificates=True)
    with start([spec], tmp_path) as clusters:
        cluster = clusters["lon"]
        outcome = {}
        for user, password in users.items():
            settings = librdkafka_settings(cluster.client_settings("SASL_SSL", user), None)
            admin = AdminClient({**settings, "sasl.username": user, "sasl.password": password})
            topic = NewTopic(f"by-{user}", num_partitions=1)
            error = admin.create_topics([topic], operation_timeout=20)[topic.topic].exception(20)
            outcome[user] = error and error.args[0].name()
        assert outcome == {"admin": None, "carol": "TOPIC_AUTHORIZATION_FAILED"}

        tls = cluster.client_settings("TLS")
        with_certificate = librdkafka_settings(tls, None) | {
            "ssl.certificate.location": tls["ssl.keystore.location"],
            "ssl.key.location": tls["ssl.keystore.location"],
        }
        assert set(AdminClient(with_certificate).list_topics(timeout=20).brokers) == {0}


def test_a_broker_that_cannot_start_is_reported_with_its_log_and_takes_the_others_down(tmp_path: Path) -> None:
    specs = [KafkaSpec("nyc"), KafkaSpec("lon", properties={"log.segment.bytes": "nonsense"})]
    with pytest.raises(StartError, match=r"broker 0 of lon(.|\n)*nonsense"):
        start(specs, tmp_path)
    await_condition(lambda: not pids_with(str(tmp_path)), "no process is left")


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_the_command_leaves_no_broker_behind(tmp_path: Path, number: signal.Signals, exit_code: int) -> None:
    command = [sys.executable, "-m", "local.kafka", "nyc", f"--folder={tmp_path}", "--property=num.io.threads=1"]
    command += ["--scram=alice", "--plain=bob"]
    environ = {**os.environ, "PYTHONPATH": str(INCLUDE)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as launcher:
        assert launcher.stdout is not None
        said = []
        for line in launcher.stdout:
            said.append(line.rstrip())
            if line.startswith("kafka: running"):
                break
        assert said[:2] == [f"kafka nyc: formatting {tmp_path}/nyc", "kafka nyc: starting 1 broker"]
        assert pids_with(f"{tmp_path}/nyc/broker-0/server.properties")
        for user in ("alice", "bob"):
            login = tmp_path / "nyc" / f"{user}.properties"
            assert f"kafka nyc: user {user} comes in with {login}" in said
            assert stat.S_IMODE(login.stat().st_mode) == 0o600
        launcher.send_signal(number)
        launcher.wait(60)
    assert launcher.returncode == exit_code
    await_condition(lambda: not pids_with(str(tmp_path)), "no broker is left")
