"""SCRAM users of a local cluster, made through its PLAINTEXT listener once it runs.

Not while formatting: the tool that formats takes passwords on its command line, where everyone on the machine can
read them. Users of SASL PLAIN stand in the brokers' own properties, which only their owner can read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from local.errors import StartError
from local.kafka.properties import SCRAM_MECHANISM

_ITERATIONS = 4096  # the least that Kafka takes; these passwords guard nothing
_TIMEOUT_S = 30.0


def create_scram_users(bootstrap_servers: str, passwords: Mapping[str, str]) -> None:
    """Gives each user its password, also where the user is there already."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import (
        AdminClient,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialAlteration,
        UserScramCredentialUpsertion,
    )

    kind = ScramCredentialInfo(ScramMechanism[SCRAM_MECHANISM.replace("-", "_")], _ITERATIONS)
    wanted: list[UserScramCredentialAlteration] = [
        UserScramCredentialUpsertion(user, kind, password.encode()) for user, password in passwords.items()
    ]
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    for user, done in admin.alter_user_scram_credentials(wanted, request_timeout=_TIMEOUT_S).items():
        try:
            done.result(_TIMEOUT_S)
        except KafkaException as error:
            raise StartError(f"The SCRAM user {user} could not be made: {error.args[0].str()}.") from error


def login_settings(user: str, password: str, authority: Path) -> dict[str, str]:
    """What librdkafka needs, beside the address, to come in as a SCRAM user."""
    return {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(authority),
        "sasl.mechanism": SCRAM_MECHANISM,
        "sasl.username": user,
        "sasl.password": password,
    }
