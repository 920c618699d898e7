"""The libraries' errors in our words: who could not be reached, who refused us, and what to look at.

Every message names the cluster and its bootstrap servers and went through `mask`.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import kafka.errors as kafka_errors

from twinlog.cluster.secrets import mask
from twinlog.errors import AuthenticationError, ClusterError, ClusterUnreachableError, NotAuthorizedError

if TYPE_CHECKING:
    import confluent_kafka

_REFUSED = (
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.UnsupportedSaslMechanismError,
    kafka_errors.IllegalSaslStateError,
)
_NO_ANSWER = (
    kafka_errors.InvalidReceiveError,
    kafka_errors.KafkaConnectionError,
    kafka_errors.KafkaTimeoutError,
    kafka_errors.RequestTimedOutError,
    kafka_errors.NodeNotReadyError,
    kafka_errors.UnknownBrokerIdError,
)
# A handshake that waits for the other side when its time is over is no disagreement about TLS.
_WAITING = (ssl.SSLWantReadError, ssl.SSLWantWriteError)
# A broker that goes away in the middle says as little as a listener that expects plain text.
_HUNG_UP = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
_SYSTEM_ERROR = re.compile(r"(\d+) E[A-Z0-9]+")
_TIMED_OUT = re.compile(r"timed out after ([\d.]+) ms", re.IGNORECASE)
_WORDLESS = {
    kafka_errors.KafkaConnectionError: "the connection was lost",
    kafka_errors.KafkaTimeoutError: "no answer before the time-out",
}
# librdkafka's errors by name: Spark's tasks import this module, and have no use for that library.
_ADMIN_NO_ANSWER = frozenset(
    {
        "_TRANSPORT",
        "_TIMED_OUT",
        "_ALL_BROKERS_DOWN",
        "_RESOLVE",
        "REQUEST_TIMED_OUT",
    }
)
_ADMIN_REFUSED = frozenset(
    {
        "_AUTHENTICATION",
        "_SSL",
        "SASL_AUTHENTICATION_FAILED",
        "UNSUPPORTED_SASL_MECHANISM",
    }
)
_ADMIN_NOT_AUTHORIZED = frozenset(
    {
        "CLUSTER_AUTHORIZATION_FAILED",
        "TOPIC_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    }
)


@dataclass(frozen=True, slots=True)
class Failures:
    """Words for the failures of one cluster's clients."""

    alias: str
    bootstrap_servers: str

    def of_raw(self, error: BaseException) -> ClusterError:
        """For an error of kafka-python's."""
        of_tls = (cause for cause in _causes(error) if isinstance(cause, ssl.SSLError))
        tls = next((cause for cause in of_tls if not isinstance(cause, _WAITING)), None)
        if isinstance(tls, _HUNG_UP):
            return self.unreachable("a TLS connection was ended by the other side; does security.protocol fit it?")
        if tls is not None:
            return self.tls(tls.reason or str(tls))
        if isinstance(error, _REFUSED):
            return self.refused(words(error))
        if isinstance(error, kafka_errors.AuthorizationError):
            return self.not_authorized(words(error))
        if isinstance(error, _NO_ANSWER):
            return self.unreachable(words(error))
        return ClusterError(self._say(f"answered with an error: {words(error)}"))

    def of_admin(self, error: confluent_kafka.KafkaError, heard: list[confluent_kafka.KafkaError]) -> ClusterError:
        """For an error of librdkafka's, and what it `heard` from brokers before: its calls just time out."""
        refusal = next((earlier for earlier in [error, *heard] if earlier.name() in _ADMIN_REFUSED), None)
        if refusal is not None:
            if refusal.name() == "_SSL":
                return self.tls(refusal.str())
            return self.refused(refusal.str())
        if error.name() in _ADMIN_NOT_AUTHORIZED:
            return self.not_authorized(error.str())
        if error.name() in _ADMIN_NO_ANSWER:
            return self.unreachable((heard[0] if heard else error).str())
        return ClusterError(self._say(f"answered with an error: {error.str()}"))

    def unreachable(self, reason: str) -> ClusterUnreachableError:
        # The sentence begins with the address already, where there is only one.
        reason = reason.removeprefix(f"{self.bootstrap_servers}: ")
        return ClusterUnreachableError(self._say(f"could not be reached: {reason}"))

    def refused(self, reason: str) -> AuthenticationError:
        return AuthenticationError(self._say(f"did not accept our credentials: {reason}"))

    def tls(self, reason: str) -> AuthenticationError:
        hint = "check security.protocol, ssl.truststore.location and ssl.keystore.location"
        return AuthenticationError(self._say(f"could not agree on TLS ({reason}); {hint}"))

    def not_authorized(self, reason: str) -> NotAuthorizedError:
        return NotAuthorizedError(self._say(f"does not allow this: {reason}"))

    def _say(self, what: str) -> str:
        return mask(f"cluster {self.alias} ({self.bootstrap_servers}) {what}")


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        yield cause
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__


def words(error: BaseException) -> str:
    """The text of kafka-python's error alone; printed, it is `KafkaConnectionError: 111 ECONNREFUSED`."""
    if isinstance(error, kafka_errors.InvalidReceiveError):
        return "what answered does not speak Kafka in plain text; check security.protocol"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    parts = (words(part) if isinstance(part, BaseException) else str(part) for part in error.args if part)
    text = _TIMED_OUT.sub(_in_seconds, ": ".join(parts))
    system_error = _SYSTEM_ERROR.fullmatch(text)
    if system_error is not None:
        return os.strerror(int(system_error[1]))
    return text or _WORDLESS.get(type(error), type(error).__name__)


def _in_seconds(timed_out: re.Match[str]) -> str:
    return f"timed out after {float(timed_out[1]) / 1000:.1f} s"
