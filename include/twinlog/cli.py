"""The command line: the same operations as the DAGs, without Airflow, since a disaster may take Airflow too.

Exit codes: 0 done, 1 found something wrong, 2 wrong use or configuration, 3 a cluster could not be reached. An error
is one clear sentence on standard error; a traceback comes only with `--debug`, and never with a secret in it.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from twinlog.commands import (
    canary,
    checkpoint,
    control,
    drill,
    failback,
    failover,
    heartbeat,
    ledger,
    migrate,
    mirror,
    reconcile,
    repair,
    status,
    switchover,
    sync,
    throttle,
    topology,
    translate,
)
from twinlog.commands.console import Console, masked
from twinlog.errors import TwinlogError

_INTERRUPTED = 130
_BROKEN_PIPE = 141
"""What a shell reports for a program that SIGINT or SIGPIPE ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    asked = _parser().parse_args(arguments)
    console = Console(as_json=asked.json)
    if asked.debug:
        _show_logs()
    try:
        code: int = asked.run(asked, console)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has seen enough; closing standard output at exit must not complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        console.note("twinlog: interrupted")
        return _INTERRUPTED
    except TwinlogError as error:
        _report(console, str(error), asked.debug)
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the last place that can turn it into a sentence
        _report(console, f"{type(error).__name__}: {error} (a fault of Twinlog; --debug shows where)", asked.debug)
        return TwinlogError.exit_code
    return code


def _show_logs() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_MaskingFormatter("%(name)s: %(message)s"))
    logging.basicConfig(level=logging.DEBUG, handlers=[handler])


class _MaskingFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return masked(super().format(record))


def _report(console: Console, sentence: str, debug: bool) -> None:
    if debug:
        console.note(traceback.format_exc().rstrip())
    console.note(f"twinlog: {sentence}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="twinlog",
        description="Mirrors Kafka clusters, and takes over when one is gone.",
        epilog="Exit codes: 0 done, 1 found something wrong, 2 wrong use or configuration, 3 a cluster not reached.",
    )
    parser.add_argument("--version", action=_Version)
    _add_common(parser, topology=Path(os.environ.get("TWINLOG_TOPOLOGY", "topology.yaml")), json=False, debug=False)
    # The same options after the verb, where people write them too; there they must not reset what came before.
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    _add_common(common)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for command in (
        topology,
        mirror,
        sync,
        checkpoint,
        heartbeat,
        canary,
        translate,
        ledger,
        control,
        throttle,
        reconcile,
        repair,
        status,
        failover,
        switchover,
        failback,
        drill,
        migrate,
    ):
        command.add_to(verbs, common)
    return parser


def _add_common(parser: argparse.ArgumentParser, **defaults: object) -> None:
    parser.add_argument(
        "--topology", metavar="FILE", type=Path, help="the topology ($TWINLOG_TOPOLOGY, or topology.yaml)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--debug", action="store_true", help="show logs, and a traceback with an error")
    parser.set_defaults(**defaults)


class _Version(argparse.Action):
    """Looks the version up only when asked: reading package metadata is slow."""

    def __init__(self, option_strings: list[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version and end")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version  # noqa: PLC0415 - see above

        sys.stdout.write(f"twinlog {version('twinlog')}\n")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
