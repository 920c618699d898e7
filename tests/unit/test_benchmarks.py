"""Benchmarks that need no cluster run, so that a change of what they measure does not leave them behind."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from local.places import INCLUDE


@pytest.mark.parametrize(
    ("module", "sizes", "shown"),
    [("translate", ("40000", "1000"), "answered: 1,000"), ("plan", ("500",), "heaviest task / mean")],
)
def test_it_runs(module: str, sizes: tuple[str, ...], shown: str) -> None:
    root = INCLUDE.parent
    done = subprocess.run(
        [sys.executable, "-P", "-m", f"benchmarks.{module}", *sizes],
        env={**os.environ, "PYTHONPATH": f"{INCLUDE}{os.pathsep}{root}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout
