"""`python -m local.kafka nyc lon`: local clusters until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from local.errors import LocalError
from local.kafka.cluster import start
from local.kafka.spec import KafkaSpec
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
        type=_pair,
        default=[],
        metavar="USER=PASSWORD",
        help="add a SASL_SSL listener with this SCRAM-SHA-512 user",
    )
    parser.add_argument(
        "--plain",
        action="append",
        type=_pair,
        default=[],
        metavar="USER=PASSWORD",
        help="add a SASL_SSL listener with this SASL PLAIN user",
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
                scram=dict(options.scram),
                plain=dict(options.plain),
                authorizer=options.authorizer,
                properties=dict(options.property),
            )
        )
        port = None if port is None else port + brokers
    return specs


if __name__ == "__main__":
    sys.exit(main())
