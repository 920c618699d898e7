"""A person's yes before something that can't be undone, on a terminal; without one, only `--yes` will do."""

from __future__ import annotations

import argparse
import sys

from twinlog.commands.console import Console
from twinlog.errors import ConfigurationError


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only make the plan, keep it and show it")
    parser.add_argument("--yes", action="store_true", help="carry the plan out without asking")


def demand_somebody(asked: argparse.Namespace, what: str) -> None:
    """Refuse, before anything is looked at, where nobody could be asked."""
    if not asked.yes and not asked.dry_run and not sys.stdin.isatty():
        raise ConfigurationError(f"{what} Nobody can be asked here: say --yes, or --dry-run to see the plan only")


def approved(asked: argparse.Namespace, console: Console, question: str) -> bool:
    """Whether to go ahead."""
    if asked.yes:
        return True
    console.note(f"{question} Type yes to go ahead:")
    return sys.stdin.readline().strip().lower() == "yes"
