"""The launcher's own rules, without a broker: what it refuses, and the properties it writes."""

from __future__ import annotations

import re
import socket
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from local.certificates import Certificates
from local.errors import PreconditionError, StartError
from local.kafka import KafkaSpec, properties, start
from local.kafka import __main__ as command
from local.kafka.properties import NodePorts
from local.ports import free_ports
from support.fake_commands import fake_command

CERTIFICATES = Certificates(Path("/c/ca.pem"), Path("/c/broker.pem"), Path("/c/client.pem"))


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    folder = tmp_path / "jars"
    folder.mkdir()
    (folder / "pom.sha256").touch()
    return folder


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("n/y", {}, "Cluster name 'n/y' cannot name a folder"),
        ("nyc", {"brokers": 0}, "Cluster nyc has 0 brokers; give it one at least."),
        ("nyc", {"brokers": 3, "ports": [9092]}, "Cluster nyc has 3 brokers and 1 ports"),
        ("nyc", {"client_certificates": True}, "Cluster nyc asks for client certificates; give it tls as well."),
    ],
)
def test_a_wrong_specification_is_refused(name: str, options: Mapping[str, Any], message: str) -> None:
    with pytest.raises(PreconditionError, match=f"^{re.escape(message)}"):
        KafkaSpec(name, **options)


def test_a_name_given_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PreconditionError, match=r"^Cluster name 'nyc' is given twice; give each its own name\.$"):
        start([KafkaSpec("nyc"), KafkaSpec("nyc")], tmp_path)


def test_a_taken_port_is_refused_before_anything_starts(tmp_path: Path, jars: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(PreconditionError, match=rf"^Port {port} on 127\.0\.0\.1 is taken;"):
            start([KafkaSpec("nyc", ports=[port])], tmp_path / "data", jars=jars)
    assert not (tmp_path / "data").exists()


def test_two_clusters_on_one_port_are_refused(tmp_path: Path, jars: Path) -> None:
    ports = free_ports(1)
    with pytest.raises(PreconditionError, match=rf"^Port {ports[0]} is asked for twice;"):
        start([KafkaSpec("nyc", ports=ports), KafkaSpec("lon", ports=ports)], tmp_path, jars=jars)


def test_an_old_java_is_refused(tmp_path: Path, jars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_command(tmp_path / "bin", "java", 'openjdk version "11.0.2"')
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(PreconditionError, match="is version 11, which is too old"):
        start([KafkaSpec("nyc")], tmp_path, jars=jars)


def test_missing_jars_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PreconditionError, match="run `make setup`"):
        start([KafkaSpec("nyc")], tmp_path, jars=tmp_path / "none")


# Stands in for Java: notes what it was told, formats, and does not start a broker.
NOTING_JAVA = """#!/bin/sh
echo "$@" >> {notes}
case "$*" in -version) echo 'openjdk version "17.0.1"';; *StorageTool*) ;; *) exit 1;; esac
"""


def test_passwords_are_on_no_command_line(tmp_path: Path, jars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = tmp_path / "notes"
    fake_command(tmp_path / "bin", "java").write_text(NOTING_JAVA.format(notes=notes))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    spec = KafkaSpec("nyc", scram={"alice": "s3cret"}, plain={"bob": "s3cret"})
    with pytest.raises(StartError, match=r"^broker 0 of nyc ended with exit code 1 while starting"):
        start([spec], tmp_path / "data", jars=jars)
    told = notes.read_text()
    assert "kafka.tools.StorageTool format" in told
    assert "kafka.Kafka" in told
    assert "s3cret" not in told
    assert stat.S_IMODE((tmp_path / "data/nyc/broker-0/server.properties").stat().st_mode) == 0o600


def three_nodes(*listeners: str) -> tuple[NodePorts, ...]:
    return tuple(
        NodePorts(100 + node, {name: 200 + 10 * i + node for i, name in enumerate(listeners)}) for node in range(3)
    )


def test_every_node_knows_the_quorum_and_its_own_listeners() -> None:
    spec = KafkaSpec("lon", brokers=3, tls=True)
    written = properties.broker(spec, 1, three_nodes(*spec.listeners), Path("/data"), CERTIFICATES)
    assert written["node.id"] == "1"
    assert written["broker.rack"] == "rack-1"
    assert written["controller.quorum.voters"] == "0@127.0.0.1:100,1@127.0.0.1:101,2@127.0.0.1:102"
    assert written["listeners"] == "CONTROLLER://127.0.0.1:101,PLAINTEXT://127.0.0.1:201,TLS://127.0.0.1:211"
    assert written["listener.security.protocol.map"] == "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,TLS:SSL"


@pytest.mark.parametrize(
    ("brokers", "replicas", "in_sync"), [(1, "1", "1"), (2, "2", "2"), (3, "3", "2"), (5, "3", "2")]
)
def test_internal_topics_fit_the_number_of_brokers(brokers: int, replicas: str, in_sync: str) -> None:
    ports = tuple(NodePorts(1, {"PLAINTEXT": 2}) for _ in range(brokers))
    written = properties.broker(KafkaSpec("nyc", brokers=brokers), 0, ports, Path("/data"), None)
    assert written["offsets.topic.replication.factor"] == replicas
    assert written["transaction.state.log.replication.factor"] == replicas
    assert written["transaction.state.log.min.isr"] == in_sync


def test_given_properties_win() -> None:
    spec = KafkaSpec("nyc", properties={"num.io.threads": "8", "log.retention.ms": "-1"})
    written = properties.broker(spec, 0, three_nodes("PLAINTEXT"), Path("/data"), None)
    assert (written["num.io.threads"], written["log.retention.ms"]) == ("8", "-1")


def test_clients_of_each_listener_get_what_it_asks_for() -> None:
    spec = KafkaSpec("lon", brokers=3, tls=True, client_certificates=True, scram={"al": 'a"\\'}, plain={"bo": "b"})
    nodes = three_nodes(*spec.listeners)
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/c/ca.pem"}
    assert properties.client(spec, "PLAINTEXT", nodes, CERTIFICATES, None) == {
        "bootstrap.servers": "127.0.0.1:200,127.0.0.1:201,127.0.0.1:202",
        "security.protocol": "PLAINTEXT",
    }
    assert properties.client(spec, "TLS", nodes, CERTIFICATES, None) == trust | {
        "bootstrap.servers": "127.0.0.1:210,127.0.0.1:211,127.0.0.1:212",
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": "/c/client.pem",
    }
    assert properties.client(spec, "SASL_SSL", nodes, CERTIFICATES, None) == trust | {
        "bootstrap.servers": "127.0.0.1:220,127.0.0.1:221,127.0.0.1:222",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="al" password="a\\"\\\\";',
    }
    assert properties.client(spec, "SASL_SSL", nodes, CERTIFICATES, "bo")["sasl.mechanism"] == "PLAIN"


def test_an_unknown_listener_or_user_is_refused() -> None:
    spec = KafkaSpec("lon", brokers=3, scram={"al": "a"})
    nodes = three_nodes(*spec.listeners)
    with pytest.raises(PreconditionError, match=r"^Cluster lon has no listener TLS, only PLAINTEXT, SASL_SSL\.$"):
        properties.client(spec, "TLS", nodes, CERTIFICATES, None)
    with pytest.raises(PreconditionError, match=r"^Cluster lon has no user bo\.$"):
        properties.client(spec, "SASL_SSL", nodes, CERTIFICATES, "bo")


def test_passwords_are_not_in_the_specification_s_text() -> None:
    assert "s3cret" not in repr(KafkaSpec("lon", scram={"al": "s3cret"}, plain={"bo": "s3cret"}))


def test_the_command_makes_passwords_and_takes_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["nyc", "--scram", "alice=s3cret"])
    assert "expected a user's name" in capsys.readouterr().err


def test_the_command_says_in_one_sentence_what_it_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["nyc:three"]) == 1
    assert capsys.readouterr().err == (
        "kafka: 'nyc:three' does not name a cluster; write NAME, or NAME:3 for three brokers.\n"
    )
