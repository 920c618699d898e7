"""A cluster's settings and secrets become clients, and nothing else happens here.

The same settings serve both libraries: kafka-python for the raw protocol, confluent-kafka for plain reads and writes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlog.cluster.client_config import ClientConfig, for_kafka_python, for_librdkafka
from twinlog.cluster.exact_writer import ExactWriter
from twinlog.cluster.raw import RawClient
from twinlog.cluster.refusals import principal_of
from twinlog.cluster.secrets import ConnectionLookup, ResolvedSettings, resolve
from twinlog.cluster.security import Token, read_security
from twinlog.cluster.tls import check_files, tls_context
from twinlog.cluster.tokens import TokenSource
from twinlog.model.client_settings import client_settings
from twinlog.model.clients import profile_settings
from twinlog.model.topology import Flow, Topology

if TYPE_CHECKING:
    import confluent_kafka

DEFAULT_TIMEOUT_S = 30.0
TokenCallback = Callable[[str | None], tuple[str, float]]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class ClusterAccess:
    """How to reach one cluster as one kind of client."""

    alias: str
    settings: ResolvedSettings

    @property
    def bootstrap_servers(self) -> str:
        return self.settings["bootstrap.servers"]

    def exact_writer(self) -> ExactWriter:
        """A client that writes records, each once and in order."""
        return ExactWriter(self.alias, *self._librdkafka())

    def consumer(self, settings: Mapping[str, Any]) -> confluent_kafka.Consumer:
        """A plain consumer, as users have them, with these settings over the cluster's."""
        import confluent_kafka  # noqa: PLC0415 - not needed where Spark's tasks run

        config, token = self._librdkafka()
        values = {**config, **settings}
        if token is not None:
            values["oauth_cb"] = token
        return confluent_kafka.Consumer(values)

    def raw(self, timeout_s: float = DEFAULT_TIMEOUT_S, beside: RawClient | None = None) -> RawClient:
        """A client for the raw protocol, connected; on the loop of the client `beside` it, if there is one."""
        client = RawClient(self.alias, self._raw_config(), beside, principal_of(self.settings))
        try:
            return client.connect(timeout_s)
        except BaseException:
            client.close()
            raise

    def _librdkafka(self) -> tuple[Mapping[str, Any], TokenCallback | None]:
        """The configuration of librdkafka's clients, and where they get tokens from if it can't fetch them itself."""
        config = for_librdkafka(self.settings)
        self._log(config, "librdkafka")
        security = read_security(self.settings)
        if security.tls is not None:
            check_files(security.tls)
        if isinstance(security.sasl, Token) and security.sasl.in_file:
            return config.values, _token_callback(TokenSource(security.sasl))
        return config.values, None

    def _raw_config(self) -> dict[str, Any]:
        config = for_kafka_python(self.settings)
        self._log(config, "kafka-python")
        values = dict(config.values)
        security = read_security(self.settings)
        if security.tls is not None:
            values["ssl_context"] = tls_context(security.tls)
        if isinstance(security.sasl, Token):
            values["sasl_oauth_token_provider"] = _token_provider(security.sasl)
        return values

    def _log(self, config: ClientConfig, library: str) -> None:
        for name, reason in config.not_applying.items():
            _LOG.debug("cluster %s: %s has no effect on %s: %s", self.alias, name, library, reason)


def flow_access(
    topology: Topology,
    flow: Flow,
    side: str,
    role: str = "admin",
    *,
    environ: Mapping[str, str] | None = None,
    connections: ConnectionLookup | None = None,
) -> ClusterAccess:
    """How a flow reaches its `source` or `target`; secrets are looked up now."""
    alias = flow.source if side == "source" else flow.target
    profile = profile_settings(flow.profile, role)
    merged = client_settings(topology, flow, side, role)
    written = {name: value for name, value in merged.items() if profile.get(name) != value}
    connection = topology.clusters[alias].connection
    settings = resolve(written, connection, defaults=profile, environ=environ, connections=connections)
    return ClusterAccess(alias, settings)


def _token_callback(source: TokenSource) -> TokenCallback:
    def callback(_: str | None) -> tuple[str, float]:
        issued = source.current()
        return issued.value, issued.expires_at_s

    return callback


def _token_provider(token: Token) -> Any:
    from kafka.net.sasl.oauth import AbstractTokenProvider  # noqa: PLC0415 - only where OAUTHBEARER is used

    source = TokenSource(token)

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return source.current().value

        def extensions(self) -> dict[str, str]:
            return dict(token.extensions)

    return Provider()
