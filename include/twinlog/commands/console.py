"""Where a command's words go: results to standard output, everything about them to standard error.

With `--json`, standard output holds exactly one JSON object, or nothing where there is no result. Nothing leaves
without its secrets taken out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Console:
    """Prints for one command."""

    as_json: bool = False

    def result(self, text: Iterable[str], value: dict[str, Any]) -> None:
        """The result: as lines for people, or as the one object for scripts."""
        if self.as_json:
            self.out(json.dumps(value, indent=2, ensure_ascii=False))
        else:
            for line in text:
                self.out(line)

    def out(self, text: str) -> None:
        sys.stdout.write(masked(text) + "\n")

    def note(self, text: str) -> None:
        """Something to know beside the result."""
        sys.stderr.write(masked(text) + "\n")


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as aligned lines; the first row is the heading."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def masked(text: str) -> str:
    """The text as it may be shown."""
    # Where nothing was resolved the module was never loaded, and there is nothing to mask: --help stays quick.
    secrets = sys.modules.get("twinlog.cluster.secrets")
    return text if secrets is None else str(secrets.mask(text))
