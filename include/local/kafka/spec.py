"""What a local Kafka cluster should be like.

Every cluster has a PLAINTEXT listener on the loopback address; brokers and controllers use it, or one like
it, among themselves. The other listeners come with the options that need them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from local.errors import PreconditionError

PLAINTEXT = "PLAINTEXT"
TLS = "TLS"
SASL_SSL = "SASL_SSL"

SUPER_USER = "admin"
"""The user that the authorizer lets do everything, beside the brokers, where `scram` or `plain` gives it."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class KafkaSpec:
    """One cluster: a combined controller and broker in each of its nodes, which are numbered from 0."""

    name: str
    brokers: int = 1
    ports: Sequence[int] | None = None
    """The PLAINTEXT listener's, one a broker; free ones where not given, as always for other listeners."""
    tls: bool = False
    """A listener named TLS, with the certificates of an own authority."""
    client_certificates: bool = False
    """The TLS listener asks clients for a certificate; the client's principal is User:CN=client."""
    scram: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Users and passwords of SCRAM-SHA-512; brings the SASL_SSL listener."""
    plain: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Users and passwords of SASL PLAIN; brings the SASL_SSL listener."""
    authorizer: bool = False
    """The StandardAuthorizer: all is denied but to `admin` and on PLAINTEXT, the brokers' own listener."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Broker properties; they win over those of the launcher."""
    heap_mb: int = 384
    quick_start: bool = True
    """Only the JVM's quick compiler: half the CPU time until ready, and less throughput; not for benchmarks."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise PreconditionError(
                f"Cluster name {self.name!r} cannot name a folder; use letters, digits, '-' and '_'."
            )
        if self.brokers < 1:
            raise PreconditionError(f"Cluster {self.name} has {self.brokers} brokers; give it one at least.")
        if self.ports is not None and len(self.ports) != self.brokers:
            raise PreconditionError(
                f"Cluster {self.name} has {self.brokers} brokers and {len(self.ports)} ports; give one port a broker."
            )
        if self.client_certificates and not self.tls:
            raise PreconditionError(f"Cluster {self.name} asks for client certificates; give it tls as well.")

    @property
    def listeners(self) -> tuple[str, ...]:
        """The names of the listeners for clients, PLAINTEXT first."""
        names = [PLAINTEXT]
        if self.tls:
            names.append(TLS)
        if self.scram or self.plain:
            names.append(SASL_SSL)
        return tuple(names)

    @property
    def needs_certificates(self) -> bool:
        return len(self.listeners) > 1
