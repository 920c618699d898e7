"""The libraries' errors as people read them."""

from __future__ import annotations

import errno
import logging
import ssl

import kafka.errors as kafka_errors
import pytest

from support.silent import closed_port, silent_server
from twinlog.cluster.access import ClusterAccess
from twinlog.cluster.failures import Failures, words
from twinlog.cluster.secrets import resolve
from twinlog.errors import AuthenticationError, ClusterUnreachableError


def reach(servers: str, timeout_s: float) -> str:
    """The sentence for a cluster that cannot be reached."""
    with pytest.raises(ClusterUnreachableError) as unreachable:
        ClusterAccess("lon", resolve({"bootstrap.servers": servers}, environ={})).raw(timeout_s)
    return str(unreachable.value)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (kafka_errors.KafkaConnectionError("111 ECONNREFUSED"), "Connection refused"),
        (kafka_errors.KafkaConnectionError("113 EHOSTUNREACH"), "No route to host"),
        (kafka_errors.KafkaConnectionError(ConnectionResetError(errno.ECONNRESET, "reset")), "reset"),
        (kafka_errors.KafkaConnectionError(), "the connection was lost"),
        (kafka_errors.KafkaTimeoutError("Timed out after 1499.8430069999813 ms"), "timed out after 1.5 s"),
        (kafka_errors.RequestTimedOutError("Request timed out after 30000 ms"), "Request timed out after 30.0 s"),
        (kafka_errors.KafkaTimeoutError(), "no answer before the time-out"),
        (kafka_errors.NodeNotReadyError("no broker takes connections"), "no broker takes connections"),
        (kafka_errors.NotLeaderForPartitionError(), "NotLeaderForPartitionError"),
        (
            kafka_errors.InvalidReceiveError("Invalid frame length: 1213486160"),
            "what answered does not speak Kafka in plain text; check security.protocol",
        ),
    ],
)
def test_an_error_of_the_library_is_its_text_alone(error: Exception, said: str) -> None:
    assert words(error) == said


def _disagreement() -> ssl.SSLError:
    """What the ssl module raises for a certificate that it does not trust."""
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed")
    error.reason = "CERTIFICATE_VERIFY_FAILED"
    return error


@pytest.mark.parametrize(
    ("over_tls", "is_disagreement"),
    [
        (ssl.SSLWantReadError("The operation did not complete (read)"), False),
        (ssl.SSLEOFError("EOF occurred in violation of protocol"), False),
        (_disagreement(), True),
    ],
)
def test_only_a_disagreement_about_tls_is_taken_for_one(over_tls: ssl.SSLError, is_disagreement: bool) -> None:
    error = kafka_errors.KafkaTimeoutError("Timed out after 1500 ms")
    error.__context__ = over_tls

    failure = Failures("lon", "localhost:1").of_raw(error)

    assert isinstance(failure, AuthenticationError if is_disagreement else ClusterUnreachableError)


def test_a_cluster_of_one_address_is_named_once() -> None:
    server = closed_port()
    assert reach(server, 5) == f"cluster lon ({server}) could not be reached: Connection refused"


def test_of_several_addresses_each_says_why() -> None:
    closed = closed_port()
    with silent_server() as silent:
        said = reach(f"{closed},{silent}", 1.5)
    assert said.startswith(f"cluster lon ({closed},{silent}) could not be reached: ")
    assert f"{closed}: Connection refused" in said
    assert f"{silent}: timed out after " in said


def test_the_library_logs_nothing_beside_the_error(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        reach(closed_port(), 5)
    assert not [record for record in caplog.records if record.name.split(".")[0] == "kafka"]
