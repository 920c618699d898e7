"""What the repository promises to a newcomer: pins that go together, two commands, and links that lead somewhere."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from local.places import REPOSITORY

FIRST_SCREEN_LINES = 25


def pins(file: str) -> dict[str, str]:
    """Package and version of each line that names one; a line without an exact version fails."""
    lines = [line.strip() for line in (REPOSITORY / file).read_text().splitlines()]
    wanted = [line for line in lines if line and not line.startswith("#")]
    exact = [re.fullmatch(r"([\w.-]+)(?:\[[\w,-]+\])?==([\w.+!-]+)( ;.*)?", line) for line in wanted]
    assert [line for line, match in zip(wanted, exact, strict=True) if match is None] == []
    return {match[1]: match[2] for match in exact if match}


@pytest.mark.parametrize(
    "file", ["requirements.txt", "requirements-dev.txt", "requirements-s3.txt", "docker/requirements-postgresql.txt"]
)
def test_every_pin_is_exact(file: str) -> None:
    assert pins(file)


def test_the_two_packages_of_spark_share_their_files_and_so_their_version() -> None:
    found = pins("requirements.txt")
    assert found["pyspark"] == found["pyspark-client"]


def test_no_package_has_two_versions() -> None:
    run, develop = pins("requirements.txt"), pins("requirements-dev.txt")
    assert {
        name: (run[name], develop[name]) for name in run.keys() & develop.keys() if run[name] != develop[name]
    } == {}


def test_the_readme_s_first_screen_says_what_it_is_for_whom_and_the_two_commands() -> None:
    screen = "\n".join((REPOSITORY / "README.md").read_text().splitlines()[:FIRST_SCREEN_LINES])
    for words in ("keeps the twin of a Kafka cluster", "It is for platform teams", "\nmake demo ", "\nmake test "):
        assert words in screen


def test_ci_runs_the_command_that_people_run() -> None:
    script = REPOSITORY / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text().rstrip().endswith("exec make test")


@pytest.mark.parametrize("page", ["README.md", "docs/architectures.md", "docs/settings.md"])
def test_links_within_the_repository_lead_somewhere(page: str) -> None:
    file = REPOSITORY / page
    targets = re.findall(r"\]\((?!https?:)([^)#\s]+)", file.read_text(encoding="utf-8"))
    assert [target for target in targets if not Path(file.parent, target).exists()] == []
