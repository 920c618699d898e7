"""`python -m local.kafka nyc lon`: local clusters until Ctrl-C.

Passwords are made here and written to files that only their owner can read, a client's properties for each user: one
given on the command line could be read by everyone on the machine.
"""

from __future__ import annotations

import argparse
import re
import secrets
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from local.certificates import write_private
from local.errors import LocalError
from local.kafka import properties
from local.kafka.cluster import KafkaCluster, start
from local.kafka.spec import SASL_SSL, KafkaSpec
from local.processes import termination_as_exit


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        with termination_as_exit(), ExitStack() as stack:
            specs = _specs(options)
            folder = options.folder or stack.enter_context(tempfile.TemporaryDirectory(prefix="twinlog-kafka."))
            clusters = stack.enter_context(start(specs, Path(folder).absolute()))
            for cluster in clusters.values():
                for listener, servers in cluster.listeners.items():
                    print(f"kafka {cluster.name}: {listener} {servers}")
                for user, file in _write_logins(cluster):
                    print(f"kafka {cluster.name}: user {user} comes in with {file}")
            print("kafka: running until Ctrl-C", flush=True)
            signal.pause()
    except LocalError as error:
        print(f"kafka: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m local.kafka", description="Starts Kafka clusters on this machine, until Ctrl-C."
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help="a cluster; NAME:3 has three brokers")
    parser.add_argument(
        "--port",
        type=int,
        metavar="N",
        help="the first broker's port for PLAINTEXT, counting up from there; free ports otherwise",
    )
    parser.add_argument("--folder", type=Path, help="where data stays; a temporary folder otherwise")
    parser.add_argument("--tls", action="store_true", help="add a TLS listener with certificates of its own")
    parser.add_argument(
        "--client-certificates", action="store_true", help="the TLS listener asks clients for a certificate"
    )
    parser.add_argument(
        "--scram",
        action="append",
        type=_user,
        default=[],
        metavar="USER",
        help="add a SASL_SSL listener with this SCRAM-SHA-512 user, and write its client properties",
    )
    parser.add_argument(
        "--plain",
        action="append",
        type=_user,
        default=[],
        metavar="USER",
        help="add a SASL_SSL listener with this SASL PLAIN user, and write its client properties",
    )
    parser.add_argument("--authorizer", action="store_true", help="deny all but `admin` and the PLAINTEXT listener")
    parser.add_argument(
        "--property", action="append", type=_pair, default=[], metavar="KEY=VALUE", help="a broker property"
    )
    return parser


def _pair(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise argparse.ArgumentTypeError("expected NAME=VALUE")
    return key, value


def _user(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]+", text):
        raise argparse.ArgumentTypeError(
            "expected a user's name, of letters, digits, '-' and '_'; its password is made"
        )
    return text


def _write_logins(cluster: KafkaCluster) -> list[tuple[str, Path]]:
    logins = [(user, cluster.folder / f"{user}.properties") for user in (*cluster.spec.scram, *cluster.spec.plain)]
    for user, file in logins:
        settings = cluster.client_settings(SASL_SSL, user)
        write_private(file, properties.as_file(settings).encode("latin-1"))
    return logins


def _specs(options: argparse.Namespace) -> list[KafkaSpec]:
    specs: list[KafkaSpec] = []
    port = options.port
    for text in options.names:
        name, _, count = text.partition(":")
        if count and not count.isdecimal():
            raise LocalError(f"{text!r} does not name a cluster; write NAME, or NAME:3 for three brokers.")
        brokers = int(count or 1)
        specs.append(
            KafkaSpec(
                name,
                brokers=brokers,
                ports=None if port is None else range(port, port + brokers),
                tls=options.tls,
                client_certificates=options.client_certificates,
                scram={user: secrets.token_urlsafe(12) for user in options.scram},
                plain={user: secrets.token_urlsafe(12) for user in options.plain},
                authorizer=options.authorizer,
                properties=dict(options.property),
            )
        )
        port = None if port is None else port + brokers
    return specs


if __name__ == "__main__":
    sys.exit(main())
