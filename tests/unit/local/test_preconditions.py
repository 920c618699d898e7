from __future__ import annotations

from pathlib import Path

import pytest

from local import preconditions
from local.errors import PreconditionError
from support.fake_commands import fake_command


def java_that_says(folder: Path, version: str) -> dict[str, str]:
    fake_command(folder, "java", f'openjdk version "{version}" 2025-04-15')
    return {"PATH": str(folder)}


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.2", "25-ea"])
def test_a_java_new_enough_is_taken(tmp_path: Path, version: str) -> None:
    assert preconditions.java(java_that_says(tmp_path, version)) == tmp_path / "java"


@pytest.mark.parametrize(("version", "called"), [("11.0.2", "11"), ("1.8.0_392", "8"), ("16.0.1", "16")])
def test_an_old_java_is_refused(tmp_path: Path, version: str, called: str) -> None:
    with pytest.raises(PreconditionError) as refused:
        preconditions.java(java_that_says(tmp_path, version))
    assert str(refused.value) == (
        f"Java at {tmp_path}/java is version {called}, which is too old; "
        "install a JDK 17 or newer, or point JAVA_HOME to one."
    )


def test_a_missing_java_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PreconditionError, match=r"^Java was not found on PATH; install a JDK 17 or newer"):
        preconditions.java({"PATH": str(tmp_path)})


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    fake_command(tmp_path / "jdk" / "bin", "java", 'openjdk version "21.0.2"')
    environ = java_that_says(tmp_path, "11.0.2") | {"JAVA_HOME": str(tmp_path / "jdk")}
    assert preconditions.java(environ) == tmp_path / "jdk" / "bin" / "java"


def test_a_java_home_without_java_is_refused_and_named(tmp_path: Path) -> None:
    environ = java_that_says(tmp_path, "17") | {"JAVA_HOME": "/no/such/jdk"}
    with pytest.raises(PreconditionError, match=r"^JAVA_HOME is /no/such/jdk, which has no bin/java;"):
        preconditions.java(environ)


def test_a_java_that_fails_is_refused(tmp_path: Path) -> None:
    fake_command(tmp_path, "java", exit_code=3)
    with pytest.raises(PreconditionError, match=r"does not run; install .* \(exit code 3\)\.$"):
        preconditions.java({"PATH": str(tmp_path)})


def test_a_java_that_says_no_version_is_refused(tmp_path: Path) -> None:
    fake_command(tmp_path, "java", "hello")
    with pytest.raises(PreconditionError, match="does not say its version"):
        preconditions.java({"PATH": str(tmp_path)})


def test_maven_new_enough_is_taken(tmp_path: Path) -> None:
    fake_command(tmp_path, "mvn", "Apache Maven 3.8.7")
    assert preconditions.maven({"PATH": str(tmp_path)}) == tmp_path / "mvn"


def test_an_old_maven_is_refused(tmp_path: Path) -> None:
    fake_command(tmp_path, "mvn", "Apache Maven 3.5.4")
    with pytest.raises(PreconditionError, match=r"is version 3\.5, which is too old; install Maven 3\.6 or newer\.$"):
        preconditions.maven({"PATH": str(tmp_path)})


def test_a_missing_maven_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PreconditionError, match=r"^Maven's mvn was not found on PATH; install Maven 3\.6 or newer\.$"):
        preconditions.maven({"PATH": str(tmp_path)})


def test_a_full_disk_is_refused_for_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with pytest.raises(
        PreconditionError, match=rf"^Kafka needs \d+ MB free on the disk of {folder}, which has \d+ MB;"
    ):
        preconditions.free_space(folder, 1 << 60, "Kafka")
    assert not folder.parent.exists()


def test_enough_space_is_accepted(tmp_path: Path) -> None:
    preconditions.free_space(tmp_path, 1, "Kafka")
